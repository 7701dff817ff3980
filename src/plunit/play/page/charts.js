// The pictures: a fit or a surface for each activation, losses over steps, losses now, PLU's graph.
import { countText, lookOf, tickText } from "./theme.js";
import { drawMark } from "./pens.js";

const scaleOf = ([low, high], [from, to]) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

/** About count round numbers (1, 2 or 5 times a power of ten) in [low, high]. */
function ticksOf(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}

/** Powers of ten from 10^low to 10^high: each second or third if there are many, also 2 and 5 times them if there are few. */
function decadesOf(low, high, most) {
  const [every, factors] = [Math.ceil((high - low) / most), high - low < 2.2 ? [1, 2, 5] : [1]];
  const powers = Array.from({ length: Math.floor(high) - Math.floor(low) + 1 }, (_, i) => Math.floor(low) + i).filter((power) => power % every === 0);
  return powers.flatMap((power) => factors.map((factor) => factor * 10 ** power)).filter((value) => value >= 10 ** low && value <= 10 ** high);
}

/** Draw axes, then call draw(pen, put), clipped to their rectangle; put maps points of the view to the picture. */
function drawPlot(pen, width, height, { view, colours, room = 8 }, draw) {
  const [left, top, right, bottom] = [40, 8, width - room, height - 22];
  const [x, y] = [scaleOf(view.x, [0, right - left]), scaleOf(view.y, [bottom - top, 0])];
  for (const value of ticksOf(...view.y, 5)) {
    pen.line([[left, top + y(value)], [right, top + y(value)]], { stroke: colours.rule, width: 1 });
    pen.text(tickText(value), left - 6, top + y(value) + 4, { fill: colours.muted, anchor: "end" });
  }
  for (const value of ticksOf(...view.x, 5)) pen.text(tickText(value), left + x(value), bottom + 16, { fill: colours.muted, anchor: "middle" });
  pen.inside(left, top, right - left, bottom - top, (inner) => draw(inner, ([a, b]) => [x(a), y(b)], right - left, bottom - top));
}

/** One input: the cloud of all networks, the function, the median and the best network with its knots. */
export function drawFit(pen, width, height, { problem, panel, picture, colours, colour }) {
  drawPlot(pen, width, height, { view: problem.view, colours }, (inner, put, w, h) => {
    if (picture) inner.image(picture, 0, 0, w, h);
    for (const dot of problem.dots ?? []) drawMark(inner, ...put(dot), "circle", 1.6, { fill: colours.ink, opacity: 0.55 });
    if (problem.line) inner.line(problem.line.map(put), { stroke: colours.ink, width: 1.25, opacity: 0.85 });
    const [median, best] = [panel.median, panel.best].map(({ line }) => line.map(put));
    for (const [points, style] of [[median, { width: 1.75, dash: [6, 4] }], [best, { width: 2.5 }]]) {
      inner.line(points, { stroke: colours.card, width: style.width + 2.5, opacity: 0.6 });
      inner.line(points, { stroke: colour, ...style });
    }
    const [knots, r] = [panel.best.pieces ? best.slice(1, -1) : [], best.length > 42 ? 1.8 : 3];
    for (const knot of knots) drawMark(inner, ...knot, "circle", r, { fill: colours.card, stroke: colour, width: 1.5 });
  });
}

/** Two inputs: the surface from above, dark where it is low, and the edges of its flat parts. */
export function drawSurface(pen, width, height, { problem, picture, edges, colours, bar }) {
  drawPlot(pen, width, height, { view: problem.view, colours, room: bar ? 48 : 8 }, (inner, put, w, h) => {
    inner.image(picture, 0, 0, w, h);
    for (let i = 0; edges && i < edges.length; i += 4) {
      const ends = [put([edges[i], edges[i + 1]]), put([edges[i + 2], edges[i + 3]])];
      inner.line(ends, { stroke: "#ffffff", width: 2.5, opacity: 0.3 });
      inner.line(ends, { stroke: "#10151a", width: 1, opacity: 0.85 });
    }
    for (const dot of problem.dots ?? []) drawMark(inner, ...put(dot), "circle", 1.4, { fill: "#10151a", opacity: 0.6 });
  });
  if (!bar) return;
  pen.image(bar, width - 40, 8, 10, height - 30);
  const z = scaleOf(problem.range, [height - 22, 8]);
  for (const value of ticksOf(...problem.range, 4)) pen.text(tickText(value), width - 26, z(value) + 4, { fill: colours.muted });
}

const positive = (value) => Number.isFinite(value) && value > 0;

/** Losses over steps, on a logarithmic axis: a line for the median, a band for 5 to 95 %, and a name at its end. */
export function drawLosses(pen, width, height, { panels, titles, colours }) {
  const values = panels.flatMap(({ losses }) => [...losses.low, ...losses.high]).filter(positive).map(Math.log10);
  if (!values.length) return;
  const low = Math.min(...values) - 0.1;
  const high = Math.max(...values, low + 0.6) + 0.1;
  const last = Math.max(1, ...panels.map(({ losses }) => losses.steps.at(-1) ?? 0));
  const box = { left: 48, top: 10, right: width - 108, bottom: height - 34 };
  const x = scaleOf([0, last], [box.left, box.right]);
  const y = scaleOf([low, high], [box.bottom, box.top]);
  for (const value of decadesOf(low, high, 6)) {
    pen.line([[box.left, y(Math.log10(value))], [box.right, y(Math.log10(value))]], { stroke: colours.rule, width: 1 });
    pen.text(tickText(value), box.left - 6, y(Math.log10(value)) + 4, { fill: colours.muted, anchor: "end" });
  }
  for (const value of ticksOf(0, last, 4)) pen.text(countText(value), x(value), box.bottom + 16, { fill: colours.muted, anchor: "middle" });
  pen.text("step", (box.left + box.right) / 2, height - 3, { fill: colours.muted, anchor: "middle" });
  const along = ({ losses }, key) => losses.steps.map((step, i) => [x(step), losses[key][i]]).filter(([, v]) => positive(v)).map(([a, v]) => [a, y(Math.log10(v))]);
  for (const panel of panels) pen.area([...along(panel, "low"), ...along(panel, "high").reverse()], { fill: colours.of(panel.activation), opacity: 0.4 / Math.max(3, panels.length) });
  const medians = panels.map((panel) => ({ panel, points: along(panel, "middle") })).filter(({ points }) => points.length);
  for (const { panel, points } of medians) {
    pen.line(points, { stroke: colours.of(panel.activation), ...lookOf(panel.activation) });
    drawMark(pen, ...points.at(-1), lookOf(panel.activation).mark, 4, { fill: colours.of(panel.activation), stroke: colours.card });
  }
  for (const { panel, end, at } of movedApart(medians, box)) {
    pen.line([[end[0] + 6, end[1]], [box.right + 13, at]], { stroke: colours.rule, width: 1 });
    pen.text(titles[panel.activation], box.right + 16, at + 4, { fill: colours.of(panel.activation), size: 12, weight: 600 });
  }
}

/** Places for the names of lines: at their ends, at least 15 pixels apart. */
function movedApart(medians, { top, bottom }) {
  const sorted = medians.map(({ panel, points }) => ({ panel, end: points.at(-1), at: points.at(-1)[1] })).sort((a, b) => a.at - b.at);
  sorted.forEach((name, i) => (name.at = Math.max(name.at, i ? sorted[i - 1].at + 15 : top)));
  sorted.reverse().forEach((name, i) => (name.at = Math.min(name.at, i ? sorted[i - 1].at - 15 : bottom)));
  return sorted;
}

/** The losses of all networks now: a row of bars for each activation on one logarithmic axis. */
export function drawSpread(pen, width, height, { panels, titles, colours }) {
  const { edges } = panels[0].histogram;
  const [left, right, bottom] = [8, width - 8, height - 34];
  const x = scaleOf([edges[0], edges.at(-1)], [left, right]);
  const row = bottom / panels.length;
  const most = Math.max(1, ...panels.flatMap(({ histogram }) => histogram.counts));
  for (const value of decadesOf(edges[0], edges.at(-1), 5)) {
    const at = x(Math.log10(value));
    pen.line([[at, 0], [at, bottom]], { stroke: colours.rule, width: 1 });
    pen.text(tickText(value), Math.min(Math.max(at, 22), width - 16), bottom + 16, { fill: colours.muted, anchor: "middle" });
  }
  pen.text("loss", width / 2, height - 3, { fill: colours.muted, anchor: "middle" });
  panels.forEach(({ activation, histogram, losses }, i) => {
    const [floor, fill] = [row * (i + 1) - 1, colours.of(activation)];
    const tall = (count) => floor - (count / most) * Math.max(6, row - 22);
    const outline = histogram.counts.flatMap((count, k) => [[x(edges[k]), tall(count)], [x(edges[k + 1]), tall(count)]]);
    pen.area([[left, floor], ...outline, [right, floor]], { fill, opacity: 0.45 });
    pen.line([[left, floor], [right, floor]], { stroke: colours.muted, width: 1 });
    const middle = losses.middle.findLast(positive);
    if (middle) drawMark(pen, x(Math.log10(middle)), floor, lookOf(activation).mark, 4, { fill, stroke: colours.card });
    pen.text(titles[activation], left, floor - row + 16, { fill, size: 12, weight: 600 });
  });
}

/** PLU on [-4, 4] with its two kinks, and the learned ones, thin. */
export function drawShape(pen, width, height, { alpha, c, learned, colours }) {
  const [x, y] = [scaleOf([-4, 4], [0, width]), scaleOf([-4, 4], [height, 0])];
  const points = (a, k) => [[-4, -k - a * (4 - k)], [-k, -k], [k, k], [4, k + a * (4 - k)]].map(([u, v]) => [x(u), y(v)]);
  pen.line([[0, y(0)], [width, y(0)]], { stroke: colours.rule, width: 1 });
  pen.line([[x(0), 0], [x(0), height]], { stroke: colours.rule, width: 1 });
  for (const [a, k] of learned) pen.line(points(a, k), { stroke: colours.of("plu_learned"), width: 1.5, dash: [6, 3, 2, 3] });
  pen.line(points(alpha, c), { stroke: colours.of("plu"), width: 2.5 });
  for (const k of [-c, c]) drawMark(pen, x(k), y(k), "circle", 3, { fill: colours.card, stroke: colours.of("plu"), width: 1.5 });
}

/** A canvas with one colour of the table for each byte; the canvas is used again where there is one. */
export function pictureOf(bytes, { width, height, offset = 0 }, table, canvas = document.createElement("canvas")) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const words = (table.words ??= new Uint32Array(new Uint8Array(table.flat()).buffer));
  for (let i = 0; i < pixels.length; i++) pixels[i] = words[bytes[offset + i]];
  context.putImageData(image, 0, 0);
  return canvas;
}
