// The form: what stands in it as settings, and settings put back into it.
import { Pad } from "./pad.js";
import { countText } from "./theme.js";

const NUMBERS = ["alpha", "c", "depth", "width", "lr", "networks", "seed"];
const RATES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
const WAIT = { text: 500, number: 400, range: 120 }; // milliseconds after the last change

export class Form {
  /** changed() is called when the settings have changed and are whole; colours() gives the colours of now. */
  constructor(root, info, changed, colours) {
    Object.assign(this, { root, info, changed, csv: null, timer: 0 });
    this.form = root.querySelector("form");
    this.pad = new Pad(this.part("pad"), changed, colours);
    this.part("activations").append(...info.activations.map(activationBox));
    this.form.lr.append(...RATES.map((rate) => new Option(String(rate), String(rate))));
    this.limit();
    this.form.addEventListener("input", (event) => this.input(event));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches("input") && this.now());
    this.takeFiles();
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  limit() {
    const { limits } = this.info;
    for (const name of NUMBERS) {
      const field = this.form[name];
      if (field.type !== "select-one" && limits[name] && name !== "c") [field.min, field.max] = limits[name].map(String);
    }
    this.part("limits").textContent = `At most ${countText(limits.networks[1])} networks, ${countText(limits.points)} points, `
      + `${limits.sessions} pages at a time.`;
  }

  input(event) {
    const kind = event.target.type;
    if (kind === "file") return this.readFile(event.target.files[0]);
    this.show();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(), WAIT[kind] ?? 0);
  }

  now() {
    clearTimeout(this.timer);
    if (this.complete()) this.changed();
  }

  /** Whether there is a function to learn: a drawing may be empty, a table not yet chosen, a number half typed. */
  complete() {
    const source = this.form.source.value;
    if ((source === "drawn" && !this.pad.drawn) || (source === "csv" && !this.csv)) return false;
    return NUMBERS.every((name) => this.form[name].value !== "");
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
      paper: () => ({ kind: "paper", name: paper.value }),
      expression: () => ({ kind: "expression", text: text.value, low: Number(low.value), high: Number(high.value) }),
      drawn: () => ({ kind: "drawn", points: this.pad.points }),
      csv: () => ({ kind: "csv", ...this.csv }),
    }[source.value]();
  }

  read() {
    const activations = [...this.form.querySelectorAll("[name=activation]:checked")].map((box) => box.value);
    const numbers = Object.fromEntries(NUMBERS.map((name) => [name, Number(this.form[name].value)]));
    return { target: this.target(), activations, ...numbers };
  }

  write(settings) {
    const { target, activations, ...numbers } = { ...this.info.defaults, ...settings };
    for (const name of NUMBERS) this.put(name, numbers[name]);
    for (const box of this.form.querySelectorAll("[name=activation]")) box.checked = activations.includes(box.value);
    this.form.source.value = target.kind;
    if (target.kind === "paper") this.form.paper.value = target.name;
    if (target.kind === "expression") for (const name of ["text", "low", "high"]) this.put(name, target[name]);
    if (target.kind === "drawn") this.pad.points = target.points;
    if (target.kind === "csv") this.keepTable(target.text, target.name);
    this.show();
  }

  put(name, value) {
    const field = this.form[name];
    if (field.options && ![...field.options].some((option) => option.value === String(value))) field.add(new Option(value, value));
    if (value !== undefined) field.value = String(value);
  }

  /** A file may be dropped anywhere on the page. */
  takeFiles() {
    const drop = this.part("drop");
    const carries = (event) => [...event.dataTransfer.types].includes("Files");
    this.root.addEventListener("dragover", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      drop.classList.add("over");
    });
    this.root.addEventListener("dragleave", () => drop.classList.remove("over"));
    this.root.addEventListener("drop", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      drop.classList.remove("over");
      this.readFile(event.dataTransfer.files[0]);
    });
  }

  async readFile(file) {
    if (!file) return;
    const most = this.info.limits.body * 0.9; // JSON escapes line ends
    if (file.size > most) return this.changed(`${file.name} has ${countText(file.size)} bytes. A table may have ${countText(most)}.`);
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

function activationBox({ name, title }) {
  const label = document.createElement("label");
  label.innerHTML = '<input type="checkbox" name="activation"><span></span><i aria-hidden="true"></i>';
  label.firstChild.value = name;
  label.children[1].textContent = title;
  label.lastChild.style.borderColor = `var(--${name}, var(--muted))`;
  return label;
}
