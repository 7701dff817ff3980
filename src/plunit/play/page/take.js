// Export: the picture and a link.
import { CanvasPen, SvgPen } from "./pens.js";
import { drawFit, drawLosses, drawSpread, drawSurface } from "./charts.js";
import { countText, lossText } from "./theme.js";

const LONGEST = 8000; // characters of a table or drawing that a link may carry

/** Settings for a link, without a long table, because browsers cut long addresses. */
export function linkable(settings) {
  const { target, ...rest } = settings;
  return JSON.stringify(target).length > LONGEST ? rest : settings;
}

export function download(name, content, mime) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: mime }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Copy text; return whether the browser allowed it. */
export const copied = async (text) => (await navigator.clipboard?.writeText(text).then(() => true, () => false)) ?? false;

const SIZE = { panel: [360, 250], wide: 680, gap: 20, head: 62, chart: 280 };

/** Draw the stage as one picture of 1,160 pixels width. */
function drawAll(pen, scene, height) {
  const { colours, frame, problem, settings } = scene;
  const { panel: [w, h], gap, head } = SIZE;
  pen.area([[0, 0], [1160, 0], [1160, height], [0, height]], { fill: colours.card });
  pen.text(problem.title, gap, 32, { fill: colours.ink, size: 20, weight: 600 });
  const text = `${countText(settings.networks)} networks of ${problem.widths.join("-")} each, step ${countText(frame.step)}, learning rate ${settings.lr}`;
  pen.text(text, gap, 52, { fill: colours.muted, size: 13 });
  scene.views.forEach((view, i) => {
    const left = gap + (i % 3) * (w + gap);
    const top = head + Math.floor(i / 3) * (h + gap);
    const name = view.panel ? `${view.title}, median loss ${lossText(view.panel.losses.middle.at(-1))}` : view.title;
    pen.text(name, left + 40, top + 14, { fill: view.colour, size: 14, weight: 600 });
    pen.inside(left, top + 20, w, h - 20, (inner) => (problem.inputs === 2 ? drawSurface : drawFit)(inner, w, h - 20, { ...scene, ...view }), false);
  });
  const top = height - SIZE.chart - 10;
  const charts = [["Loss: median, and 5 to 95 % of the networks", drawLosses, gap, SIZE.wide], ["Losses now", drawSpread, 740, 400]];
  for (const [title, draw, left, width] of charts) {
    pen.text(title, left + 8, top, { fill: colours.ink, size: 14, weight: 600 });
    pen.inside(left, top + 10, width, SIZE.chart - 20, (inner) => draw(inner, width, SIZE.chart - 20, { ...scene, panels: frame.panels }), false);
  }
}

const heightOf = (scene) => SIZE.head + Math.ceil(scene.views.length / 3) * (SIZE.panel[1] + SIZE.gap) + SIZE.chart + 20;

export function svgOf(scene) {
  const pen = new SvgPen(1160, heightOf(scene));
  drawAll(pen, scene, heightOf(scene));
  return String(pen);
}

export function pngOf(scene) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2320, height: 2 * heightOf(scene) });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  drawAll(new CanvasPen(context), scene, heightOf(scene));
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
