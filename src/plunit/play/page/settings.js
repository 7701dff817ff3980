// The form: its values as settings, and settings as its values.
import { countText, finder } from "./theme.js";
import { Pad } from "./pad.js";

const NUMBERS = ["alpha", "c", "depth", "width", "lr", "networks", "seed"];
const RATES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
const WAIT = { text: 500, number: 400, range: 120 }; // milliseconds after the last change

export class Form {
  /** changed() is called when the settings have changed and are complete; changed(trouble) when a file is refused. */
  constructor(root, info, changed) {
    Object.assign(this, { root, info, changed, part: finder(root, "part"), form: root.querySelector("form"), csv: null, timer: 0 });
    this.pad = new Pad(this.part("pad"), changed);
    this.part("activations").append(...info.activations.map((activation) => this.box(activation)));
    this.form.lr.append(...RATES.map((rate) => new Option(rate, rate)));
    const { networks, points, sessions } = info.limits;
    this.part("limits").textContent = `At most ${countText(networks)} networks, ${countText(points)} points and ${sessions} pages at a time.`;
    this.form.addEventListener("input", (event) => this.input(event.target));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches("input") && this.now());
    for (const kind of ["dragover", "dragleave", "drop"]) root.addEventListener(kind, (event) => this.drag(event));
  }

  box({ name, title }) {
    const label = this.part("activation").content.firstElementChild.cloneNode(true);
    label.children[0].value = name;
    label.children[1].textContent = title;
    label.children[2].style.borderColor = `var(--${name}, var(--muted))`;
    return label;
  }

  input(field) {
    if (field.type === "file") return this.readFile(field.files[0]);
    this.show();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), WAIT[field.type] ?? 0);
  }

  /** Start, unless the function is incomplete: an empty drawing, a missing table, a number half typed. */
  now() {
    const missing = { drawn: !this.pad.drawn, csv: !this.csv }[this.form.source.value];
    if (!missing && NUMBERS.every((name) => this.form[name].value !== "")) this.changed();
  }

  /** Show the part of the form that the source needs, and the values of the sliders. */
  show() {
    for (const box of this.root.querySelectorAll("[data-source]")) box.hidden = box.dataset.source !== this.form.source.value;
    for (const output of this.root.querySelectorAll("output")) output.value = Number(this.form[output.dataset.for].value).toFixed(2);
    if (this.form.source.value === "drawn") this.pad.draw();
  }

  target() {
    const { source, text, low, high, paper } = this.form;
    return {
      paper: { kind: "paper", name: paper.value },
      expression: { kind: "expression", text: text.value, low: Number(low.value), high: Number(high.value) },
      drawn: { kind: "drawn", points: this.pad.points },
      csv: { kind: "csv", ...this.csv },
    }[source.value];
  }

  read() {
    const activations = [...this.form.querySelectorAll("[name=activation]:checked")].map((box) => box.value);
    return { target: this.target(), activations, method: this.form.elements.method.value, ...Object.fromEntries(NUMBERS.map((name) => [name, Number(this.form[name].value)])) };
  }

  write(settings) {
    const { target, activations, method, ...numbers } = { ...this.info.defaults, ...settings };
    for (const name of NUMBERS) this.put(name, numbers[name]);
    for (const box of this.form.querySelectorAll("[name=activation]")) box.checked = activations.includes(box.value);
    [this.form.source.value, this.form.elements.method.value] = [target.kind, method];
    if (target.kind === "paper") this.form.paper.value = target.name;
    if (target.kind === "expression") for (const name of ["text", "low", "high"]) this.put(name, target[name]);
    if (target.kind === "drawn") this.pad.points = target.points;
    if (target.kind === "csv") this.keepTable(target.text, target.name);
    this.show();
  }

  put(name, value) {
    const field = this.form[name];
    if (field.options && ![...field.options].some((option) => Number(option.value) === value)) field.add(new Option(value, value));
    field.value = String(value);
  }

  /** A file may be dropped anywhere on the page. */
  drag(event) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    this.part("drop").classList.toggle("over", event.type === "dragover");
    if (event.type === "drop") this.readFile(event.dataTransfer.files[0]);
  }

  async readFile(file) {
    if (!file) return;
    const most = 0.9 * this.info.limits.body; // because JSON escapes line ends
    if (file.size > most) return this.changed(`${file.name} has ${countText(file.size)} bytes, the limit is ${countText(most)}; use fewer rows.`);
    this.keepTable(await file.text(), file.name);
    this.form.source.value = "csv";
    this.show();
    this.changed();
  }

  keepTable(text, name) {
    this.csv = { text, name };
    this.part("file-name").textContent = `${name}, ${countText(text.trim().split("\n").length)} lines. Drop or choose another file.`;
  }
}
