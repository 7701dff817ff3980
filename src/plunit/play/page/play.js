// The page: start, ask for frames, send commands, export, and show errors.
import { finder } from "./theme.js";
import { Form } from "./settings.js";
import { Stage } from "./stage.js";
import { Tour } from "./tour.js";
import { copied, download, linkable, pngOf, svgOf } from "./take.js";

const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Make the root a playground. call(kind, body, options) asks Python; host may have settings, keep(settings), link(settings). */
export const mount = (root, call, host) => new Play(root, call, host);

class Play {
  constructor(root, call, host) {
    Object.assign(this, { root, call, host, session: null, starting: null, paused: false, commands: 0, part: finder(root, "part"), button: finder(root, "do") });
    const unfold = () => root.querySelectorAll("form details").forEach((one) => (one.open = getComputedStyle(root.querySelector(".columns")).gridTemplateColumns.includes(" ")));
    root.isConnected ? unfold() : requestAnimationFrame(unfold); // a notebook shows the page after this
    for (const name of ["link-name", "link-box"]) this.part(name).hidden = !host.link;
    this.open();
  }

  async open() {
    try {
      this.info = (await this.call("info", {})).json;
    } catch (error) {
      return this.fail(error);
    }
    this.titles = Object.fromEntries(this.info.activations.map(({ name, title }) => [name, title]));
    this.form = new Form(this.root, this.info, (trouble) => (trouble ? this.tell(trouble) : this.start()));
    this.stage = new Stage(this.root, this.titles, this.form, (panels) => this.tour.show(panels, this.titles));
    this.tour = new Tour(this.root, (settings) => this.begin(settings));
    const acts = { toggle: () => this.toggle(), step: () => (this.session ? this.command("step") : this.start(true)), reset: () => this.start(true),
      again: () => this.start(), clear: () => (this.form.pad.points = null), svg: () => this.save("svg"), png: () => this.save("png"),
      link: () => this.copyLink(), copy: () => this.copyLines() };
    for (const [name, act] of Object.entries(acts)) this.button(name).addEventListener("click", act);
    this.part("take-activation").addEventListener("change", () => this.allow());
    for (const button of this.root.querySelectorAll("[data-take]")) button.addEventListener("click", () => this.take(button.dataset.take));
    this.begin(this.host.settings ?? {});
  }

  begin(settings) {
    try {
      this.form.write(settings);
    } catch {
      return this.tell("The settings in this link cannot be read.", true);
    }
    return this.start();
  }

  /** Start with the form's settings. A start while another is under way waits for it; only the last one counts. */
  start(paused = false) {
    clearTimeout(this.form.timer); // the present form counts
    this.next = { ...this.form.read(), paused };
    return (this.starting ??= this.startNext().finally(() => (this.starting = null)));
  }

  async startNext() {
    while (this.next) {
      const settings = this.next;
      this.next = null;
      this.asking?.abort(); // a replaced session has no more frames
      try {
        this.started(await this.call("start", { settings, replaces: this.session ?? undefined }), settings);
      } catch (error) {
        this.fail(error);
      }
    }
  }

  started({ json: { session, problem }, payload }, { paused, ...settings }) {
    this.session = session;
    this.tell("");
    this.pausedIs(paused);
    this.part("notes").replaceChildren(...problem.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    this.part("lines").hidden = true;
    this.offer(settings.activations);
    this.host.keep?.(linkable(settings));
    this.stage.begin(problem, settings, payload);
    this.pull(session);
  }

  /** Ask for one frame after the other, as long as this session is the page's. */
  async pull(session) {
    for (let after = 0; this.session === session; ) {
      const { signal } = (this.asking = new AbortController());
      const { commands } = this;
      const reply = await this.call("frame", { session, after }, { signal }).catch((error) => ({ error }));
      await this.starting; // replies of a replaced session do not count
      if (this.session !== session) return;
      if (signal.aborted) continue;
      if (reply.error) return this.fail(reply.error);
      after = reply.json.frame;
      if (commands === this.commands) this.pausedIs(reply.json.paused, reply.json.step); // a frame made before a command does not reflect it
      if (reply.json.panels?.length) this.stage.show(reply.json, reply.payload);
      if (reply.json.ended) return this.lose(reply.json.ended, !reply.json.ended.startsWith("The server has ended"));
      if (CALM.matches || document.hidden) await new Promise((done) => setTimeout(done, 1000));
    }
  }

  pausedIs(paused, step = 0) {
    this.button("toggle").textContent = paused ? (step ? "Continue" : "Start") : "Pause";
    this.part("watched").hidden = !paused || step !== this.info?.watched;
    if (paused === this.paused) return;
    this.paused = paused;
    if (paused) this.stage?.redraw(); // the numbers of the last frame
  }

  async command(command) {
    await this.starting; // a session that is being replaced accepts no commands
    try {
      this.commands++;
      const { paused, step } = (await this.call("command", { session: this.session, command })).json;
      this.pausedIs(paused, step);
    } catch (error) {
      this.fail(error);
    }
  }

  async toggle() {
    if (!this.session) return this.start();
    await this.command(this.paused ? "resume" : "pause");
    if (this.paused) this.stage.summarise();
  }

  /** The page goes away: stop its training. */
  leave() {
    if (this.session) this.call("command", { session: this.session, command: "stop" }, { keepalive: true }).catch(() => {});
    this.session = null;
  }

  /** Show an error. Requests end with the session, so one message is enough. */
  fail(error) {
    if (error.status === undefined) throw error; // an error of this page, not an answer
    if ([0, 403, 404].includes(error.status)) this.lose(error.message, error.status === 404);
    else this.tell(error.message, error.status === 503);
  }

  lose(text, again) {
    this.session = null;
    this.pausedIs(true);
    this.tell(text, again);
  }

  tell(text, again = false) {
    this.part("message").hidden = !text;
    this.part("message-text").textContent = text && text[0].toUpperCase() + text.slice(1);
    this.button("again").hidden = !again;
  }

  offer(activations) {
    const choice = this.part("take-activation");
    const chosen = [choice.value, "plu", activations[0]].find((name) => activations.includes(name));
    choice.replaceChildren(...activations.map((name) => new Option(this.titles[name], name, false, name === chosen)));
    this.allow();
  }

  /** Disable the files that a smooth network does not have; their titles give the reason. */
  allow() {
    const { piecewise, title } = this.info.activations.find(({ name }) => name === this.part("take-activation").value);
    const why = piecewise ? "" : `${title} is smooth. Export it for PyTorch, or choose a piecewise-linear activation.`;
    for (const button of this.root.querySelectorAll("[data-exact]")) Object.assign(button, { ariaDisabled: String(!piecewise), title: why });
  }

  async take(format) {
    const activation = this.part("take-activation").value;
    try {
      const { json, payload } = await this.call("export", { session: this.session, activation, format });
      this.part("lines").hidden = format !== "fit";
      if (format === "fit") this.part("lines").querySelector("pre").textContent = new TextDecoder().decode(payload);
      else download(json.name, payload, json.mime);
      this.say(format === "fit" ? "" : `Saved ${json.name}: the best network with ${this.titles[activation]} so far.`);
    } catch (error) {
      if (error.status === 400) this.say(error.message);
      else this.fail(error);
    }
  }

  say(text) {
    this.part("taken").textContent = text;
  }

  async copyLines() {
    this.say((await copied(this.part("lines").querySelector("pre").textContent)) ? "Code copied." : "The browser does not allow copying. Select the code and copy it.");
  }

  async copyLink() {
    const settings = linkable(this.form.read());
    const link = this.host.link(settings);
    this.say(((await copied(link)) ? "Link copied." : link) + (settings.target ? "" : " The table is too long for a link, so the link leaves it out."));
  }

  async save(kind) {
    if (!this.stage.frame) return;
    if (kind === "svg") download("plunit-play.svg", svgOf(this.stage), "image/svg+xml");
    else download("plunit-play.png", await pngOf(this.stage), "image/png");
    this.say(`Saved plunit-play.${kind}.`);
  }
}
