// The pictures: one fit or surface for each activation, losses over steps, losses now, PLU's graph.
import { countText, lookOf, lossText, tickText } from "./theme.js";
import { drawMark } from "./pens.js";

function scaleOf([low, high], [from, to]) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

/** About count round numbers (1, 2 or 5 times a power of ten) in [low, high]. */
export function ticksOf(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}

/** Draw the axes of a plot and return its rectangle and its scales. */
function drawAxes(pen, width, height, view, colours, { left = 34, right = 8, top = 8, bottom = 22 } = {}) {
  const box = { left, top, right: width - right, bottom: height - bottom };
  const x = scaleOf(view.x, [box.left, box.right]);
  const y = scaleOf(view.y, [box.bottom, box.top]);
  for (const value of ticksOf(...view.y, 4)) {
    pen.line([[box.left, y(value)], [box.right, y(value)]], { stroke: colours.rule, width: 1 });
    pen.text(tickText(value), box.left - 6, y(value) + 4, { fill: colours.muted, anchor: "end" });
  }
  const xs = ticksOf(...view.x, 5);
  for (const value of xs) pen.text(tickText(value), x(value), box.bottom + 16, { fill: colours.muted, anchor: "middle" });
  return { box, x, y };
}

function clipped(pen, box, draw) {
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  pen.inside(box.left, box.top, width, height, (inner) => draw(inner, width, height));
}

/** One input: the cloud of all networks, the function, the median and the best network with its knots. */
export function drawFit(pen, width, height, { problem, panel, cloud, colours, colour }) {
  const { box } = drawAxes(pen, width, height, problem.view, colours);
  clipped(pen, box, (inner, w, h) => {
    const x = scaleOf(problem.view.x, [0, w]);
    const y = scaleOf(problem.view.y, [h, 0]);
    const put = (points) => points.map(([a, b]) => [x(a), y(b)]);
    if (cloud) inner.image(cloud, 0, 0, w, h);
    for (const [a, b] of put(problem.dots ?? [])) drawMark(inner, a, b, "circle", 1.6, { fill: colours.ink, opacity: 0.55 });
    if (problem.line?.length) inner.line(put(problem.line), { stroke: colours.ink, width: 1.25, opacity: 0.85 });
    if (!panel) return;
    inner.line(put(panel.median.line), { stroke: colours.card, width: 4, opacity: 0.6 });
    inner.line(put(panel.median.line), { stroke: colour, width: 1.75, dash: [6, 4] });
    inner.line(put(panel.best.line), { stroke: colours.card, width: 5, opacity: 0.6 });
    inner.line(put(panel.best.line), { stroke: colour, width: 2.5 });
    const r = panel.best.knots.length > 40 ? 1.8 : 3;
    for (const [a, b] of put(panel.best.knots)) drawMark(inner, a, b, "circle", r, { fill: colours.card, stroke: colour, width: 1.5 });
  });
}

/** Two inputs: the surface from above, dark where it is low, and the edges of its flat parts. */
export function drawSurface(pen, width, height, { problem, picture, edges, colours, bar }) {
  const { box } = drawAxes(pen, width, height, problem.view, colours, { right: bar ? 48 : 8 });
  clipped(pen, box, (inner, w, h) => {
    const x = scaleOf(problem.view.x, [0, w]);
    const y = scaleOf(problem.view.y, [h, 0]);
    if (picture) inner.image(picture, 0, 0, w, h);
    for (let i = 0; edges && i < edges.length; i += 4) {
      const ends = [[x(edges[i]), y(edges[i + 1])], [x(edges[i + 2]), y(edges[i + 3])]];
      inner.line(ends, { stroke: "#ffffff", width: 2, opacity: 0.35 });
      inner.line(ends, { stroke: "#10151a", width: 0.9, opacity: 0.8 });
    }
    for (const [a, b] of problem.dots ?? []) drawMark(inner, x(a), y(b), "circle", 1.4, { fill: "#10151a", opacity: 0.6 });
  });
  if (!bar) return;
  pen.image(bar, box.right + 8, box.top, 10, box.bottom - box.top);
  const z = scaleOf(problem.range, [box.bottom, box.top]);
  for (const value of ticksOf(...problem.range, 4)) pen.text(tickText(value), box.right + 22, z(value) + 4, { fill: colours.muted });
}

const finite = (value) => value !== null && Number.isFinite(value) && value > 0;

/** Losses over steps, on a logarithmic axis: a line for the median, a band for 5 to 95 %, and a name at its end. */
export function drawLosses(pen, width, height, { panels, titles, colours }) {
  const values = panels.flatMap(({ losses }) => [...losses.low, ...losses.high].filter(finite)).map(Math.log10);
  if (!values.length) return;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const last = Math.max(1, ...panels.map(({ losses }) => losses.steps.at(-1) ?? 0));
  const box = { left: 44, top: 10, right: width - 92, bottom: height - 34 };
  const x = scaleOf([0, last], [box.left, box.right]);
  const y = scaleOf([low - 0.1, Math.max(high, low + 0.5) + 0.1], [box.bottom, box.top]);
  drawDecades(pen, low - 0.1, Math.max(high, low + 0.5) + 0.1, (value) => {
    pen.line([[box.left, y(value)], [box.right, y(value)]], { stroke: colours.rule, width: 1 });
    return [box.left - 6, y(value) + 4, { fill: colours.muted, anchor: "end" }];
  });
  for (const value of ticksOf(0, last, 4)) pen.text(countText(value), x(value), box.bottom + 16, { fill: colours.muted, anchor: "middle" });
  pen.text("step", (box.left + box.right) / 2, height - 3, { fill: colours.muted, anchor: "middle" });
  for (const { activation, losses } of panels) {
    const side = (key) => losses.steps.map((step, i) => [x(step), losses[key][i]]).filter(([, v]) => finite(v)).map(([a, v]) => [a, y(Math.log10(v))]);
    pen.area([...side("low"), ...side("high").reverse()], { fill: colours.of(activation), opacity: 0.13 });
  }
  const ends = panels.map((panel) => drawMedian(pen, panel, x, y, colours)).filter(Boolean);
  for (const { activation, at, end } of spread(ends, box.bottom)) {
    pen.line([[end[0] + 5, end[1]], [box.right + 13, at]], { stroke: colours.rule, width: 1 });
    const title = titles[activation] ?? activation;
    pen.text(title, box.right + 16, at + 4, { fill: colours.of(activation), size: 12, weight: 600 });
  }
}

function drawDecades(pen, low, high, place) {
  const values = ticksOf(low, high, high - low > 3 ? 5 : 3).filter((value) => high - low < 1.2 || Math.abs(value - Math.round(value)) < 1e-9);
  for (const value of values) pen.text(lossText(10 ** value), ...place(value));
}

function drawMedian(pen, { activation, losses }, x, y, colours) {
  const look = lookOf(activation);
  const points = losses.steps.map((step, i) => [step, losses.middle[i]]).filter(([, value]) => finite(value));
  const put = points.map(([step, value]) => [x(step), y(Math.log10(value))]);
  if (!put.length) return null;
  pen.line(put, { stroke: colours.of(activation), ...look });
  const end = put.at(-1);
  drawMark(pen, ...end, look.mark, 4, { fill: colours.of(activation), stroke: colours.card });
  return { activation, end, at: end[1] };
}

/** Move the names of lines apart, 15 pixels at least, and keep them above the floor. */
function spread(ends, floor) {
  const sorted = [...ends].sort((a, b) => a.at - b.at);
  sorted.forEach((end, i) => (end.at = Math.max(end.at, i ? sorted[i - 1].at + 15 : 10)));
  sorted.reverse().forEach((end, i) => (end.at = Math.min(end.at, i ? sorted[i - 1].at - 15 : floor)));
  return sorted;
}

/** The losses of all networks now: a row of bars for each activation on one logarithmic axis. */
export function drawSpread(pen, width, height, { panels, titles, colours }) {
  const { edges } = panels[0].histogram;
  const box = { left: 8, right: width - 8, top: 4, bottom: height - 34 };
  const x = scaleOf([edges[0], edges.at(-1)], [box.left, box.right]);
  const row = (box.bottom - box.top) / panels.length;
  const most = Math.max(1, ...panels.flatMap(({ histogram }) => histogram.counts));
  drawDecades(pen, edges[0], edges.at(-1), (value) => {
    pen.line([[x(value), box.top], [x(value), box.bottom]], { stroke: colours.rule, width: 1 });
    return [Math.min(Math.max(x(value), 16), width - 16), box.bottom + 16, { fill: colours.muted, anchor: "middle" }];
  });
  pen.text("loss", width / 2, height - 3, { fill: colours.muted, anchor: "middle" });
  panels.forEach(({ activation, histogram, losses }, i) => {
    const floor = box.top + row * (i + 1) - 2;
    const colour = colours.of(activation);
    const tall = (count) => floor - (count / most) * Math.max(8, row - 20);
    const outline = histogram.counts.flatMap((count, k) => [[x(edges[k]), tall(count)], [x(edges[k + 1]), tall(count)]]);
    pen.area([[x(edges[0]), floor], ...outline, [x(edges.at(-1)), floor]], { fill: colour, opacity: 0.45 });
    pen.line([[box.left, floor], [box.right, floor]], { stroke: colours.muted, width: 1 });
    const middle = losses.middle.findLast(finite);
    if (middle) drawMark(pen, x(Math.log10(middle)), floor, lookOf(activation).mark, 4, { fill: colour, stroke: colours.card });
    pen.text(titles[activation] ?? activation, box.left, floor - row + 16, { fill: colour, size: 12, weight: 600 });
  });
}

/** PLU on [-4, 4] with its two kinks, and the learned ones, thin. */
export function drawShape(pen, width, height, { alpha, c, learned, colours }) {
  const x = scaleOf([-4, 4], [0, width]);
  const y = scaleOf([-4, 4], [height, 0]);
  const plu = (value, a, k) => Math.max(-k, Math.min(k, value)) + a * (value - Math.max(-k, Math.min(k, value)));
  const points = (a, k) => [-4, -k, k, 4].map((value) => [x(value), y(plu(value, a, k))]);
  pen.line([[0, y(0)], [width, y(0)]], { stroke: colours.rule, width: 1 });
  pen.line([[x(0), 0], [x(0), height]], { stroke: colours.rule, width: 1 });
  for (const [a, k] of learned) pen.line(points(a, k), { stroke: colours.of("plu_learned"), width: 1.5, dash: [6, 3, 2, 3] });
  pen.line(points(alpha, c), { stroke: colours.of("plu"), width: 2.5 });
  for (const side of [-c, c]) drawMark(pen, x(side), y(side), "circle", 3, { fill: colours.card, stroke: colours.of("plu"), width: 1.5 });
}

/** A canvas with one colour for each byte; the canvas is used again where there is one. */
export function pictureOf(bytes, { width, height }, table, canvas = document.createElement("canvas")) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const words = table.words ??= new Uint32Array(new Uint8Array(table.flat()).buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = words[bytes[i]];
  context.putImageData(image, 0, 0);
  return canvas;
}
