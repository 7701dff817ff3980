// Two pens with the same strokes: one draws on a canvas, the other writes SVG. Charts know neither.

const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

/** Return a pen on the canvas, cleared and as sharp as the screen, and the size to draw in. */
export function penOn(canvas, scale = window.devicePixelRatio || 1) {
  const [width, height] = [canvas.clientWidth || 1, canvas.clientHeight || 1];
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { pen: new CanvasPen(context), width, height };
}

export class CanvasPen {
  constructor(context) {
    this.c = context;
  }

  path(points, style, dash = []) {
    Object.assign(this.c, { lineJoin: "round", ...style });
    this.c.setLineDash(dash);
    this.c.beginPath();
    points.forEach(([x, y], i) => (i ? this.c.lineTo(x, y) : this.c.moveTo(x, y)));
  }

  line(points, { stroke, width = 1.5, dash = [], opacity = 1 }) {
    this.path(points, { strokeStyle: stroke, lineWidth: width, globalAlpha: opacity }, dash);
    this.c.stroke();
    this.c.globalAlpha = 1;
  }

  area(points, { fill, opacity = 1, stroke = "", width = 1 }) {
    this.path(points, { fillStyle: fill, strokeStyle: stroke, lineWidth: width, globalAlpha: opacity });
    this.c.closePath();
    this.c.fill();
    if (stroke) this.c.stroke();
    this.c.globalAlpha = 1;
  }

  text(words, x, y, { fill, size = 11, anchor = "start", weight = 400 }) {
    Object.assign(this.c, { fillStyle: fill, font: `${weight} ${size}px ${FONT}`, textAlign: anchor === "middle" ? "center" : anchor });
    this.c.fillText(words, x, y);
  }

  image(picture, x, y, width, height) {
    Object.assign(this.c, { imageSmoothingEnabled: true, imageSmoothingQuality: "low" });
    this.c.drawImage(picture, x, y, width, height);
  }

  /** Draw inside a rectangle: its corner becomes (0, 0), and the outside is clipped if asked. */
  inside(x, y, width, height, draw, clip = true) {
    this.c.save();
    this.c.translate(x, y);
    this.path([[0, 0], [width, 0], [width, height], [0, height]], {});
    if (clip) this.c.clip();
    draw(this);
    this.c.restore();
  }
}

export class SvgPen {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], clips: 0 });
  }

  element(name, attributes, content) {
    const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${typeof value === "number" ? +value.toFixed(2) : value}"`);
    this.parts.push(`<${name}${written.join("")}${content === undefined ? "/>" : `>${content}</${name}>`}`);
  }

  line(points, { stroke, width = 1.5, dash = [], opacity = 1 }) {
    const dashes = dash.length ? { "stroke-dasharray": dash.join(" ") } : {};
    this.element("polyline", { points: coordinates(points), fill: "none", stroke, "stroke-width": width, "stroke-linejoin": "round", opacity, ...dashes });
  }

  area(points, { fill, opacity = 1, stroke = "none", width = 1 }) {
    this.element("polygon", { points: coordinates(points), fill, opacity, stroke, "stroke-width": width });
  }

  text(words, x, y, { fill, size = 11, anchor = "start", weight = 400 }) {
    const content = String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    this.element("text", { x, y, fill, "font-size": size, "text-anchor": anchor, "font-weight": weight }, content);
  }

  image(picture, x, y, width, height) {
    this.element("image", { x, y, width, height, preserveAspectRatio: "none", href: picture.toDataURL("image/png") });
  }

  inside(x, y, width, height, draw, clip = true) {
    const name = `clip${++this.clips}`;
    this.element("clipPath", { id: name }, `<rect width="${width}" height="${height}"/>`);
    this.parts.push(`<g transform="translate(${x.toFixed(1)} ${y.toFixed(1)})"><g${clip ? ` clip-path="url(#${name})"` : ""}>`);
    draw(this);
    this.parts.push("</g></g>");
  }

  toString() {
    const [w, h] = [this.width, this.height];
    const start = `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="${FONT.replaceAll('"', "'")}">`;
    return [start, ...this.parts, "</svg>\n"].join("\n");
  }
}

const coordinates = (points) => points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");

const MARK_POINTS = {
  circle: Array.from({ length: 16 }, (_, i) => [Math.cos((i * Math.PI) / 8), Math.sin((i * Math.PI) / 8)]),
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[-1.1, -0.8], [1.1, -0.8], [0, 1.1]],
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
};

/** Draw a mark of about r pixels, so that activations differ not only in colour. */
export function drawMark(pen, x, y, shape, r, style) {
  pen.area(MARK_POINTS[shape].map(([dx, dy]) => [x + r * dx, y + r * dy]), style);
}
