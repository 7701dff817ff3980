// The stage: figures, charts and numbers of the newest frame.
import { cloudColours, coloursOf, countText, finder, heightColours, largeText, lossText, piecesText } from "./theme.js";
import { penOn } from "./pens.js";
import { drawFit, drawLosses, drawShape, drawSpread, drawSurface, pictureOf } from "./charts.js";

const TOLD = [3, 15, 60, 300]; // seconds of training after which screen readers get a summary

export class Stage {
  /** form has alpha and c for PLU's graph; numbered(panels) is called when the numbers have changed. */
  constructor(root, titles, form, numbered) {
    Object.assign(this, { root, titles, form, numbered, part: finder(root, "part"), views: [], frame: null, heights: heightColours() });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.look());
    new ResizeObserver(() => this.redraw()).observe(root);
    form.form.addEventListener("input", () => this.drawGraph());
    this.look();
  }

  write(name, text) {
    if (this.part(name).textContent !== text) this.part(name).textContent = text;
  }

  look() {
    Object.assign(this, { colours: coloursOf(this.root), clouds: {} });
    this.redraw();
  }

  redraw() {
    this.whole = true;
    if (this.frame) requestAnimationFrame(() => this.draw());
    this.drawGraph();
    this.form.show();
  }

  /** Prepare for a problem. The old pictures stay until the first frame, unless there are other activations. */
  begin(problem, settings, payload) {
    const names = problem.image ? ["", ...settings.activations] : settings.activations; // "" is the function itself
    Object.assign(this, { problem, settings, frame: null, fresh: false, told: 0, whole: false });
    if (names.join() !== this.views.map(({ activation }) => activation).join()) this.build(names, settings.activations);
    if (problem.image) this.views[0].picture = pictureOf(payload, problem.image, this.heights);
    this.views[0].bar = pictureOf(Uint8Array.from({ length: 256 }, (_, i) => 255 - i), { width: 1, height: 256 }, this.heights);
    for (const item of this.root.querySelectorAll(".key li")) item.hidden = item.classList.contains("surface") !== (problem.inputs === 2);
    this.write("title", problem.title);
    this.write("networks", `${countText(settings.networks)} \u00d7 ${settings.activations.length}`);
  }

  build(names, activations) {
    const copy = (name) => this.part(name).content.firstElementChild.cloneNode(true);
    this.views = names.map((activation) => this.view(activation, copy("panel")));
    this.part("panels").replaceChildren(...this.views.map((view) => view.figure));
    this.part("table").tBodies[0].replaceChildren(...activations.map(() => copy("row")));
    activations.forEach((name, i) => (this.part("table").tBodies[0].rows[i].cells[0].textContent = this.titles[name]));
  }

  view(activation, figure) {
    const [caption, canvas] = figure.children;
    const title = activation ? this.titles[activation] : "The function";
    caption.firstChild.textContent = title;
    caption.firstChild.style.color = activation && `var(--${activation})`;
    figure.dataset.activation = activation;
    return { figure, canvas, activation, title, note: caption.lastChild };
  }

  /** Keep a frame; the next repaint of the screen draws the newest one. Numbers stay until the next frame that has them. */
  show(frame, payload) {
    if (!this.fresh) requestAnimationFrame(() => this.draw());
    this.whole ||= "losses" in frame.panels[0];
    frame.panels = frame.panels.map((panel, i) => ({ ...this.frame?.panels[i], ...panel }));
    Object.assign(this, { frame, payload, fresh: true });
  }

  /** Give a view its image and, for a surface, the edges. */
  fill(view) {
    view.colour = this.colours.of(view.activation || "ink");
    if (!view.activation) return;
    view.panel = this.frame.panels.find(({ activation }) => activation === view.activation);
    const { image, edges } = view.panel;
    const table = this.problem.inputs === 2 ? this.heights : (this.clouds[view.activation] ??= cloudColours(view.colour));
    view.picture = pictureOf(this.payload, image, table, view.picture);
    view.edges = edges && new Float32Array(this.payload.slice(edges.offset, edges.offset + 16 * edges.count).buffer);
  }

  draw() {
    if (!this.frame) return;
    this.fresh = false;
    for (const view of this.views) {
      this.fill(view);
      this.paint(view.canvas, this.problem.inputs === 2 ? drawSurface : drawFit, { problem: this.problem, ...view });
    }
    if (!this.whole) return;
    this.whole = false;
    this.write("step", countText(this.frame.step));
    this.paint(this.part("losses"), drawLosses, this.frame);
    this.paint(this.part("spread"), drawSpread, this.frame);
    this.drawGraph();
    this.number();
  }

  paint(canvas, draw, scene) {
    const { pen, width, height } = penOn(canvas);
    draw(pen, width, height, { titles: this.titles, colours: this.colours, ...scene });
  }

  drawGraph() {
    const [alpha, c] = [this.form.form.alpha.valueAsNumber, this.form.form.c.valueAsNumber];
    const panel = this.frame?.panels.find(({ activation }) => activation === "plu_learned");
    this.paint(this.part("shape"), drawShape, { alpha, c, learned: panel?.alpha?.map((value, i) => [value, panel.c[i]]) ?? [] });
    this.part("shape").setAttribute("aria-label", `Graph of PLU: slope 1 between -${c} and ${c}, slope ${alpha} outside`);
  }

  /** The numbers: above the panels, in the table, and now and then for screen readers. */
  number() {
    const { panels, paused, rate, seconds } = this.frame;
    this.write("rate", paused ? "-" : largeText(rate * this.settings.networks * panels.length));
    panels.forEach((panel, i) => this.numberPanel(panel, this.part("table").tBodies[0].rows[i]));
    if (seconds >= TOLD[this.told]) this.summarise();
    this.numbered(panels);
  }

  numberPanel(panel, row) {
    const { note, canvas, title } = this.views.find(({ activation }) => activation === panel.activation);
    const [median, best] = [lossText(panel.losses.middle.at(-1)), lossText(panel.best.loss)];
    note.textContent = `median ${median}, best ${best}${panel.diverged ? `, ${countText(panel.diverged)} diverged` : ""}`;
    canvas.setAttribute("aria-label", `${title}: median loss ${median}, best loss ${best}`);
    const dead = panel.dead === null ? "-" : `${(100 * panel.dead).toFixed(1)} %`;
    [median, best, piecesText(panel.pieces), dead].forEach((text, k) => (row.cells[k + 1].textContent = text));
  }

  summarise() {
    if (!this.frame) return;
    this.told = TOLD.findIndex((time) => time > this.frame.seconds);
    const list = this.frame.panels.map((panel) => `${this.titles[panel.activation]} ${lossText(panel.losses.middle.at(-1))}`);
    this.write("summary", `Step ${countText(this.frame.step)}. Median loss: ${list.join(", ")}.`);
  }
}
