// The page at work: start, ask for frames, draw the newest, tell what went wrong.
import { penOn } from "./pens.js";
import { cloudColours, coloursOf, countText, heightColours, largeText, lossText } from "./theme.js";
import { drawFit, drawLosses, drawShape, drawSpread, drawSurface, pictureOf } from "./charts.js";
import { Form } from "./settings.js";
import { Tour } from "./tour.js";
import { copied, download, linkable, pngOf, svgOf } from "./take.js";

const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");
const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const SLOWLY = 200; // milliseconds between changes of numbers and charts
const TOLD = [3, 15, 60, 300]; // seconds of training after which screen readers get a summary

/** Make the root a playground. call(kind, body, options) asks Python; host has settings, keep and link, or nothing. */
export function mount(root, call, host) {
  const play = new Play(root, call, host);
  play.open();
  return play;
}

class Play {
  constructor(root, call, host) {
    Object.assign(this, { root, call, host, session: null, frame: null, payload: null, views: [], starting: null, slow: 0, drawn: [] });
    this.look();
    DARK.addEventListener("change", () => this.look());
    new ResizeObserver(() => this.redraw()).observe(root);
    const acts = { toggle: () => this.toggle(), step: () => this.step(), reset: () => this.start(true), again: () => this.start(),
      clear: () => this.form.pad.clear(), svg: () => this.save("svg"), png: () => this.save("png"), link: () => this.copyLink(), copy: () => this.copyLines() };
    for (const [name, act] of Object.entries(acts)) root.querySelector(`[data-do="${name}"]`).addEventListener("click", act);
    for (const button of root.querySelectorAll("[data-take]")) button.addEventListener("click", () => this.take(button.dataset.take));
    if (window.innerWidth <= 860) for (const details of root.querySelectorAll("details")) details.open = false;
    this.part("link-box").hidden = !host.link;
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  write(name, text) {
    const part = this.part(name);
    if (part.textContent !== text) part.textContent = text;
  }

  async open() {
    try {
      this.info = (await this.call("info", {})).json;
    } catch (error) {
      return this.fail(error);
    }
    this.titles = Object.fromEntries(this.info.activations.map(({ name, title }) => [name, title]));
    this.form = new Form(this.root, this.info, (trouble) => (trouble ? this.tell(trouble) : this.start()), () => this.colours);
    this.tour = new Tour(this.root, (settings) => this.begin(settings));
    this.begin(this.host.settings ?? {});
  }

  begin(settings) {
    this.form.write(settings);
    this.start();
  }

  /** Start with the form's settings. A start that comes while one is under way waits for it; only the last one counts. */
  async start(paused = false) {
    if (!this.form) return;
    this.next = { paused, settings: this.form.read() };
    if (this.starting) return;
    this.starting = true;
    while (this.next) {
      const { settings } = this.next;
      const asked = { settings: { ...settings, paused: this.next.paused }, replaces: this.session ?? undefined };
      this.next = null;
      try {
        this.started(await this.call("start", asked), settings);
      } catch (error) {
        this.fail(error);
      }
    }
    this.starting = false;
  }

  started({ json, payload }, settings) {
    Object.assign(this, { session: json.session, problem: json.problem, settings, frame: null, told: 0, drawn: [] });
    this.tell("");
    this.write("title", this.problem.title);
    this.part("notes").replaceChildren(...(this.problem.notes ?? []).map((note) => Object.assign(document.createElement("li"), { textContent: note })));
    this.write("networks", `${countText(settings.networks)} \u00d7 ${settings.activations.length}`);
    this.host.keep?.(linkable(settings));
    this.target = this.problem.image ? this.picture(this.problem.image, payload, this.heights) : null;
    this.build();
    this.pull(json.session);
  }

  /** Ask for one frame after the other, as long as this session is the page's. */
  async pull(session) {
    let after = 0;
    while (this.session === session) {
      let reply;
      try {
        reply = await this.call("frame", { session, after });
      } catch (error) {
        if (this.session === session) this.fail(error);
        return;
      }
      if (this.session !== session) return;
      after = reply.json.frame;
      this.arrived(reply);
      if (reply.json.ended) return this.ended(reply.json.ended);
      if (CALM.matches || document.hidden) await new Promise((done) => setTimeout(done, 1000));
    }
  }

  arrived({ json, payload }) {
    this.paused = json.paused;
    this.write("fps", this.paused ? "-" : String(this.rateOfFrames()));
    this.root.querySelector('[data-do="toggle"]').textContent = json.paused ? "Start" : "Pause";
    if (json.unchanged || !json.panels?.length) return;
    const waiting = this.fresh;
    Object.assign(this, { frame: json, payload, fresh: true });
    if (!waiting) requestAnimationFrame(() => this.draw());
  }

  rateOfFrames() {
    const now = performance.now();
    this.drawn = this.drawn.filter((time) => now - time < 2000);
    const span = now - (this.drawn[0] ?? now);
    return span < 300 ? "-" : Math.round((1000 * (this.drawn.length - 1)) / span);
  }

  // ---- drawing

  look() {
    this.colours = coloursOf(this.root);
    this.heights = heightColours();
    this.clouds = {};
    this.redraw();
  }

  redraw() {
    this.slow = 0;
    if (this.frame) requestAnimationFrame(() => this.draw());
    else this.views.forEach((view) => this.drawView(view));
    if (this.form) {
      this.drawGraph();
      this.form.show();
    }
  }

  picture(image, payload, table, canvas) {
    return pictureOf(payload.subarray(image.offset, image.offset + image.width * image.height), image, table, canvas);
  }

  /** One figure for each activation; for two inputs the function comes first. */
  build() {
    const surface = this.problem.inputs === 2;
    for (const name of ["curve", "surface"]) for (const item of this.root.querySelectorAll(`.key .${name}`)) item.hidden = (name === "surface") !== surface;
    this.bar = surface ? pictureOf(Uint8Array.from({ length: 256 }, (_, i) => 255 - i), { width: 1, height: 256 }, this.heights) : null;
    const names = surface ? [null, ...this.settings.activations] : this.settings.activations;
    this.views = names.map((name) => this.figure(name));
    this.part("panels").replaceChildren(...this.views.map((view) => view.figure));
    const choice = this.part("take-activation");
    const chosen = this.settings.activations.includes(choice.value) ? choice.value : this.settings.activations.includes("plu") ? "plu" : this.settings.activations[0];
    choice.replaceChildren(...this.settings.activations.map((name) => new Option(this.titles[name], name, false, name === chosen)));
    this.part("table").tBodies[0].replaceChildren(...this.settings.activations.map((name) => tableRow(this.titles[name])));
    this.part("lines").hidden = true;
    this.redraw();
  }

  figure(activation) {
    const figure = document.createElement("figure");
    figure.innerHTML = '<figcaption><span></span><span class="muted"></span></figcaption><canvas role="img"></canvas>';
    const [caption, canvas] = figure.children;
    const title = activation ? this.titles[activation] : "the function";
    caption.firstChild.textContent = title;
    caption.firstChild.style.color = activation ? `var(--${activation})` : "";
    figure.dataset.activation = activation ?? "target";
    return { figure, canvas, note: caption.lastChild, activation, title };
  }

  drawView(view) {
    const { pen, width, height } = penOn(view.canvas);
    view.colour = view.activation ? this.colours.of(view.activation) : this.colours.ink;
    const draw = this.problem.inputs === 2 ? drawSurface : drawFit;
    draw(pen, width, height, { problem: this.problem, colours: this.colours, ...view });
  }

  /** Fill a view with its part of the frame: the picture of its bytes, and the edges of a surface. */
  fill(view) {
    if (!view.activation) return Object.assign(view, { picture: this.target, bar: this.bar });
    const panel = this.frame.panels.find(({ activation }) => activation === view.activation);
    const table = this.problem.inputs === 2 ? this.heights : (this.clouds[view.activation] ??= cloudColours(this.colours.of(view.activation)));
    view.picture = this.picture(panel.image, this.payload, table, view.picture);
    view.cloud = view.picture;
    view.panel = panel;
    view.edges = panel.edges ? new Float32Array(this.payload.slice(panel.edges.offset, panel.edges.offset + 16 * panel.edges.count).buffer) : null;
  }

  draw() {
    if (!this.frame) return;
    const now = performance.now();
    if (this.fresh) this.drawn.push(now);
    this.fresh = false;
    for (const view of this.views) {
      this.fill(view);
      this.drawView(view);
    }
    this.write("step", countText(this.frame.step));
    if (now - this.slow < SLOWLY && !this.paused) return;
    this.slow = now;
    for (const [name, draw] of [["losses", drawLosses], ["spread", drawSpread]]) {
      const { pen, width, height } = penOn(this.part(name));
      draw(pen, width, height, { panels: this.frame.panels, titles: this.titles, colours: this.colours });
    }
    this.drawGraph();
    this.number();
  }

  drawGraph() {
    const { pen, width, height } = penOn(this.part("shape"));
    const panel = this.frame?.panels.find(({ activation }) => activation === "plu_learned");
    const learned = panel?.alpha?.map((alpha, i) => [alpha, panel.c[i]]) ?? [];
    const [alpha, c] = ["alpha", "c"].map((name) => Number(this.form.form[name].value));
    drawShape(pen, width, height, { alpha, c, learned, colours: this.colours });
    this.part("shape").setAttribute("aria-label", `Graph of PLU: slope 1 between -${c} and ${c}, slope ${alpha} outside`);
  }

  /** The numbers: those above the panels, the table, and what screen readers hear. */
  number() {
    const { panels, rate, seconds } = this.frame;
    this.write("rate", this.paused ? "-" : largeText(rate * this.settings.networks * panels.length));
    const rows = this.part("table").tBodies[0].rows;
    panels.forEach((panel, i) => {
      const middle = lossText(panel.losses.middle.at(-1));
      const view = this.views.find(({ activation }) => activation === panel.activation);
      view.note.textContent = `median ${middle}, best ${lossText(panel.best.loss)}`;
      view.canvas.setAttribute("aria-label", `${view.title}: median loss ${middle}, best loss ${lossText(panel.best.loss)}`);
      const broken = panel.diverged ? `, ${countText(panel.diverged)} diverged` : "";
      const cells = [middle, lossText(panel.best.loss) + broken, piecesText(panel.pieces), panel.dead === null ? "none can die" : `${(100 * panel.dead).toFixed(1)} %`];
      cells.forEach((text, k) => (rows[i].cells[k + 1].textContent = text));
    });
    this.tour.show(panels, this.titles);
    if (seconds >= TOLD[this.told]) this.summarise();
  }

  summarise() {
    this.told = TOLD.findIndex((time) => time > this.frame.seconds);
    const list = this.frame.panels.map((panel) => `${this.titles[panel.activation]} ${lossText(panel.losses.middle.at(-1))}`);
    this.write("summary", `Step ${countText(this.frame.step)}. Median loss: ${list.join(", ")}.`);
  }

  // ---- commands

  async command(name) {
    try {
      this.arrived(await this.call("command", { session: this.session, command: name }));
    } catch (error) {
      this.fail(error);
    }
  }

  async toggle() {
    if (!this.session) return this.start();
    await this.command(this.paused ? "resume" : "pause");
    if (this.paused && this.frame) this.summarise();
  }

  step() {
    return this.session ? this.command("step") : this.start(true);
  }

  leave() {
    if (this.session) this.call("command", { session: this.session, command: "stop" }, { keepalive: true }).catch(() => {});
    this.session = null;
  }

  // ---- what went wrong

  ended(why) {
    this.session = null;
    this.root.querySelector('[data-do="toggle"]').textContent = "Start";
    this.tell(why, true);
  }

  fail(error) {
    if (error.status === undefined) throw error; // a fault of this page, not an answer
    const lost = error.status === 0 || error.status === 404 || error.status === 403;
    if (lost) this.session = null;
    this.tell(error.message, error.status === 404 || error.status === 503);
  }

  tell(text, again = false) {
    this.part("message").hidden = !text;
    this.write("message-text", text);
    this.root.querySelector('[data-do="again"]').hidden = !again;
  }

  // ---- taking it along

  async take(format) {
    const activation = this.part("take-activation").value;
    try {
      const { json, payload } = await this.call("export", { session: this.session, activation, format });
      if (format === "fit") return this.showLines(new TextDecoder().decode(payload));
      download(json.name, payload, json.mime);
      this.write("taken", `Saved ${json.name}, the best ${this.titles[activation]} network.`);
    } catch (error) {
      this.fail(error);
    }
  }

  showLines(text) {
    const box = this.part("lines");
    box.hidden = false;
    box.querySelector("pre").textContent = text;
    this.write("taken", "");
  }

  async copyLines() {
    const text = this.part("lines").querySelector("pre").textContent;
    this.write("taken", (await copied(text)) ? "The lines are copied." : "The browser does not allow copying. Mark the lines and copy them.");
  }

  async copyLink() {
    const settings = linkable(this.form.read());
    const link = this.host.link(settings);
    const missing = settings.target ? "" : " The table is too long for a link and is not in it.";
    this.write("taken", ((await copied(link)) ? "The link is copied." : link) + missing);
  }

  async save(kind) {
    if (!this.frame) return;
    const scene = { frame: this.frame, problem: this.problem, settings: this.settings, titles: this.titles, colours: this.colours, views: this.views };
    if (kind === "svg") download("plunit-play.svg", svgOf(scene), "image/svg+xml");
    else download("plunit-play.png", await pngOf(scene), "image/png");
    this.write("taken", `Saved plunit-play.${kind}.`);
  }
}

function tableRow(title) {
  const row = document.createElement("tr");
  row.innerHTML = '<th scope="row"></th><td></td><td></td><td></td><td></td>';
  row.firstChild.textContent = title;
  return row;
}

function piecesText(pieces) {
  if (!pieces) return "curved";
  const [low, middle, high] = [pieces.low, pieces.middle, pieces.high].map(Math.round);
  return low === high ? String(middle) : `${middle} (${low} to ${high})`;
}
