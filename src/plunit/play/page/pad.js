// The drawing: a function of x on a grid, drawn by mouse, finger or keyboard.
import { penOn, drawMark } from "./pens.js";
import { tickText } from "./theme.js";

const COLUMNS = 65;
const EVERY = 8; // each eighth column is a point that the keyboard moves
const VIEW = { x: [-4, 4], y: [-2, 2] };

export class Pad {
  /** changed() is called when a stroke ends or a key has moved a point. */
  constructor(canvas, changed, colours) {
    Object.assign(this, { canvas, changed, colours, values: new Array(COLUMNS).fill(0), drawn: false, at: null, point: 4 });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.at && this.stroke(event));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => this.up());
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => this.draw());
  }

  /** The drawing as [[x, y], ...], or null if nothing was drawn. */
  get points() {
    return this.drawn ? this.values.map((value, i) => [abscissa(i), Number(value.toFixed(3))]) : null;
  }

  set points(points) {
    this.drawn = Boolean(points?.length);
    const sorted = [...(points ?? [])].sort((a, b) => a[0] - b[0]);
    this.values = Array.from({ length: COLUMNS }, (_, i) => (this.drawn ? interpolated(sorted, abscissa(i)) : 0));
    this.draw();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.round(((event.clientX - box.left) / box.width) * (COLUMNS - 1));
    const value = VIEW.y[1] - ((event.clientY - box.top) / box.height) * (VIEW.y[1] - VIEW.y[0]);
    return [Math.min(COLUMNS - 1, Math.max(0, column)), Math.min(VIEW.y[1], Math.max(VIEW.y[0], value))];
  }

  down(event) {
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.at = this.place(event);
    this.stroke(event);
  }

  stroke(event) {
    const [column, value] = this.place(event);
    const [from, first] = this.at;
    const count = Math.abs(column - from) || 1;
    for (let i = 0; i <= count; i++) this.values[from + Math.sign(column - from) * i] = first + ((value - first) * i) / count;
    this.values[column] = value;
    Object.assign(this, { at: [column, value], drawn: true });
    this.draw();
  }

  up() {
    if (!this.at) return;
    this.at = null;
    this.changed();
  }

  key(event) {
    const across = { ArrowLeft: -1, ArrowRight: 1, Home: -99, End: 99 }[event.key];
    const up = { ArrowUp: 0.1, ArrowDown: -0.1, PageUp: 0.5, PageDown: -0.5 }[event.key];
    if (across === undefined && up === undefined) return;
    event.preventDefault();
    if (across) this.point = Math.min((COLUMNS - 1) / EVERY, Math.max(0, this.point + across));
    else this.move(up);
    this.draw();
  }

  move(up) {
    const middle = this.point * EVERY;
    const target = Math.min(VIEW.y[1], Math.max(VIEW.y[0], this.values[middle] + up));
    const moved = target - this.values[middle];
    for (let i = Math.max(0, middle - EVERY); i <= Math.min(COLUMNS - 1, middle + EVERY); i++) {
      this.values[i] += moved * (1 - Math.abs(i - middle) / EVERY);
    }
    this.drawn = true;
    this.changed();
  }

  clear() {
    this.points = null;
  }

  draw() {
    const { pen, width, height } = penOn(this.canvas);
    const colours = this.colours();
    const x = (i) => (i / (COLUMNS - 1)) * width;
    const y = (value) => ((VIEW.y[1] - value) / (VIEW.y[1] - VIEW.y[0])) * height;
    pen.line([[0, y(0)], [width, y(0)]], { stroke: colours.rule, width: 1 });
    pen.line([[width / 2, 0], [width / 2, height]], { stroke: colours.rule, width: 1 });
    if (!this.drawn) pen.text("Draw here", width / 2, height / 4, { fill: colours.muted, size: 14, anchor: "middle" });
    pen.line(this.values.map((value, i) => [x(i), y(value)]), { stroke: this.drawn ? colours.ink : colours.muted, width: 2 });
    const focused = this.canvas.matches(":focus");
    for (let i = 0; focused && i < COLUMNS; i += EVERY) {
      const chosen = i === this.point * EVERY;
      const style = { fill: chosen ? colours.accent : colours.card, stroke: colours.accent, width: 1.5 };
      drawMark(pen, x(i), y(this.values[i]), "circle", chosen ? 5.5 : 3, style);
    }
    this.tell();
  }

  tell() {
    const value = Number(this.values[this.point * EVERY].toFixed(2));
    const set = (name, text) => this.canvas.setAttribute(`aria-${name}`, text);
    set("valuemin", VIEW.y[0]);
    set("valuemax", VIEW.y[1]);
    set("valuenow", value);
    set("valuetext", `point ${this.point + 1} of 9, x = ${tickText(abscissa(this.point * EVERY))}, y = ${tickText(value)}`);
  }
}

function abscissa(column) {
  return VIEW.x[0] + (column / (COLUMNS - 1)) * (VIEW.x[1] - VIEW.x[0]);
}

function interpolated(points, x) {
  const right = points.findIndex(([at]) => at >= x);
  if (right <= 0) return points[right < 0 ? points.length - 1 : 0][1];
  const [[a, f], [b, g]] = [points[right - 1], points[right]];
  return f + ((x - a) / (b - a || 1)) * (g - f);
}
