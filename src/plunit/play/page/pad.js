// The drawing: a function of x on a grid, drawn by mouse, finger or keyboard.
import { coloursOf, tickText } from "./theme.js";
import { penOn, drawMark } from "./pens.js";

const [COLUMNS, EVERY] = [65, 8]; // each eighth column is a point that the keyboard moves
const [LEFT, RIGHT, TOP] = [-4, 4, 2];
const [NONE, ALL] = [[COLUMNS - 1, 0], [0, COLUMNS - 1]]; // first and last drawn column

const abscissa = (column) => LEFT + (column / (COLUMNS - 1)) * (RIGHT - LEFT);
const within = (value, most, least = -most) => Math.min(most, Math.max(least, value));

export class Pad {
  /** changed() is called when a stroke ends or a key has moved a point. */
  constructor(canvas, changed) {
    Object.assign(this, { canvas, changed, values: new Array(COLUMNS).fill(0), ends: NONE, drawn: false, at: null, point: 4 });
    const acts = { pointerdown: (event) => this.down(event), pointermove: (event) => this.at && this.stroke(event), pointerup: () => this.up(),
      pointercancel: () => this.up(), keydown: (event) => this.key(event), focus: () => this.draw(), blur: () => this.draw() };
    for (const [kind, act] of Object.entries(acts)) canvas.addEventListener(kind, act);
  }

  /** The drawing as [[x, y], ...], or null if nothing was drawn. */
  get points() {
    return this.drawn ? this.values.map((value, i) => [abscissa(i), Number(value.toFixed(3))]) : null;
  }

  set points(points) {
    const sorted = [...(points ?? [])].sort((a, b) => a[0] - b[0]);
    Object.assign(this, { drawn: sorted.length > 0, ends: sorted.length ? ALL : NONE });
    this.values = Array.from({ length: COLUMNS }, (_, i) => (this.drawn ? interpolated(sorted, abscissa(i)) : 0));
    this.draw();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.round(((event.clientX - box.left) / box.width) * (COLUMNS - 1));
    return [within(column, COLUMNS - 1, 0), within(TOP - (2 * TOP * (event.clientY - box.top)) / box.height, TOP)];
  }

  down(event) {
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const [column, value] = this.place(event);
    const near = this.drawn ? within(column, this.ends[1], this.ends[0]) : column; // a stroke next to the drawing is joined to it
    this.at = near === column ? [column, value] : [near, this.values[near]];
    this.stroke(event);
  }

  /** Set all columns between the last place of the pointer and this one, and continue the curve to both ends. */
  stroke(event) {
    const [[from, first], [to, last]] = [this.at, this.place(event)];
    const count = Math.abs(to - from) || 1;
    for (let i = 0; i <= count; i++) this.values[from + Math.sign(to - from) * i] = first + ((last - first) * i) / count;
    const [start, end] = [Math.min(this.ends[0], from, to), Math.max(this.ends[1], from, to)];
    this.values.fill(this.values[start], 0, start).fill(this.values[end], end);
    Object.assign(this, { at: [to, last], drawn: true, ends: [start, end] });
    this.draw();
  }

  up() {
    if (this.at) this.changed();
    this.at = null;
  }

  key(event) {
    const across = { ArrowLeft: -1, ArrowRight: 1, Home: -COLUMNS, End: COLUMNS }[event.key];
    const up = { ArrowUp: 0.1, ArrowDown: -0.1, PageUp: 0.5, PageDown: -0.5 }[event.key];
    if (!across && !up) return;
    event.preventDefault();
    if (across) this.point = within(this.point + across, (COLUMNS - 1) / EVERY, 0);
    else this.move(up);
    this.draw();
  }

  /** Move the point, and its neighbourhood less and less. */
  move(up) {
    const middle = this.point * EVERY;
    const moved = within(this.values[middle] + up, TOP) - this.values[middle];
    this.values = this.values.map((value, i) => value + moved * Math.max(0, 1 - Math.abs(i - middle) / EVERY));
    Object.assign(this, { drawn: true, ends: ALL });
    this.changed();
  }

  draw() {
    const [{ pen, width, height }, colours] = [penOn(this.canvas), coloursOf(this.canvas)];
    const put = (value, i) => [(i / (COLUMNS - 1)) * width, ((TOP - value) / (2 * TOP)) * height];
    for (const axis of [[[0, height / 2], [width, height / 2]], [[width / 2, 0], [width / 2, height]]]) pen.line(axis, { stroke: colours.rule, width: 1 });
    if (!this.drawn) pen.text("Draw here", width / 2, height / 4, { fill: colours.muted, size: 14, anchor: "middle" });
    pen.line(this.values.map(put), { stroke: this.drawn ? colours.ink : colours.muted, width: 2 });
    for (let i = 0; this.canvas.matches(":focus-visible") && i < COLUMNS; i += EVERY) {
      const chosen = i === this.point * EVERY;
      drawMark(pen, ...put(this.values[i], i), "circle", chosen ? 5.5 : 3, { fill: chosen ? colours.accent : colours.card, stroke: colours.accent, width: 1.5 });
    }
    const value = Number(this.values[this.point * EVERY].toFixed(2));
    const words = `point ${this.point + 1} of 9, x = ${tickText(abscissa(this.point * EVERY))}, y = ${tickText(value)}`;
    for (const [name, text] of Object.entries({ valuemin: -TOP, valuemax: TOP, valuenow: value, valuetext: words })) this.canvas.setAttribute(`aria-${name}`, text);
  }
}

function interpolated(points, x) {
  const right = points.findIndex(([at]) => at >= x);
  if (right <= 0) return points.at(right)[1];
  const [[a, f], [b, g]] = [points[right - 1], points[right]];
  return f + ((x - a) / (b - a)) * (g - f);
}
