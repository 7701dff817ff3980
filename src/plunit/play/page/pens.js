// Two pens with the same strokes: one draws on a canvas, the other writes SVG. Charts know neither.

/** Return a pen on the canvas, cleared and as sharp as the screen, and the size to draw in. */
export function penOn(canvas, scale = window.devicePixelRatio || 1) {
  const width = canvas.clientWidth || canvas.width;
  const height = canvas.clientHeight || canvas.height;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { pen: new CanvasPen(context), width, height };
}

const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export class CanvasPen {
  constructor(context) {
    this.c = context;
  }

  line(points, { stroke, width = 1.5, dash = [], opacity = 1 }) {
    const c = this.c;
    Object.assign(c, { strokeStyle: stroke, lineWidth: width, lineJoin: "round", lineCap: "butt", globalAlpha: opacity });
    c.setLineDash(dash);
    c.beginPath();
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  area(points, { fill, opacity = 1, stroke = "", width = 1 }) {
    const c = this.c;
    Object.assign(c, { fillStyle: fill, globalAlpha: opacity });
    c.beginPath();
    points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.closePath();
    c.fill();
    if (stroke) {
      Object.assign(c, { strokeStyle: stroke, lineWidth: width, lineJoin: "round" });
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  text(words, x, y, { fill, size = 11, anchor = "start", weight = 400 }) {
    const c = this.c;
    Object.assign(c, { fillStyle: fill, font: `${weight} ${size}px ${FONT}`, textAlign: anchor === "middle" ? "center" : anchor });
    c.fillText(words, x, y);
  }

  image(picture, x, y, width, height) {
    this.c.imageSmoothingEnabled = true;
    this.c.imageSmoothingQuality = "high";
    this.c.drawImage(picture, x, y, width, height);
  }

  /** Draw inside a rectangle: its corner becomes (0, 0), and what lies outside is cut off if asked. */
  inside(x, y, width, height, draw, clip = true) {
    const c = this.c;
    c.save();
    c.translate(x, y);
    if (clip) {
      c.beginPath();
      c.rect(0, 0, width, height);
      c.clip();
    }
    draw(this);
    c.restore();
  }
}

export class SvgPen {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], clips: 0 });
  }

  line(points, { stroke, width = 1.5, dash = [], opacity = 1 }) {
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<polyline points="${coordinates(points)}" fill="none" stroke="${stroke}" stroke-width="${width}" `
      + `stroke-linejoin="round" opacity="${opacity}"${dashes}/>`);
  }

  area(points, { fill, opacity = 1, stroke = "none", width = 1 }) {
    this.parts.push(`<polygon points="${coordinates(points)}" fill="${fill}" opacity="${opacity}" stroke="${stroke || "none"}" `
      + `stroke-width="${width}" stroke-linejoin="round"/>`);
  }

  text(words, x, y, { fill, size = 11, anchor = "start", weight = 400 }) {
    this.parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${fill}" font-size="${size}" `
      + `text-anchor="${anchor}" font-weight="${weight}">${escaped(words)}</text>`);
  }

  image(picture, x, y, width, height) {
    this.parts.push(`<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" `
      + `href="${picture.toDataURL("image/png")}"/>`);
  }

  inside(x, y, width, height, draw, clip = true) {
    const name = `clip${++this.clips}`;
    if (clip) this.parts.push(`<clipPath id="${name}"><rect width="${width}" height="${height}"/></clipPath>`);
    this.parts.push(`<g transform="translate(${x.toFixed(1)} ${y.toFixed(1)})"><g${clip ? ` clip-path="url(#${name})"` : ""}>`);
    draw(this);
    this.parts.push("</g></g>");
  }

  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" `
      + `viewBox="0 0 ${this.width} ${this.height}" font-family="${FONT.replaceAll('"', "'")}">\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

function coordinates(points) {
  return points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
}

function escaped(words) {
  return String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** Draw a mark of about r pixels: no activation is told by its colour alone. */
export function drawMark(pen, x, y, shape, r, style) {
  pen.area(MARK_POINTS[shape].map(([dx, dy]) => [x + r * dx, y + r * dy]), style);
}

const MARK_POINTS = {
  circle: Array.from({ length: 16 }, (_, i) => [Math.cos((i * Math.PI) / 8), Math.sin((i * Math.PI) / 8)]),
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[-1.1, -0.8], [1.1, -0.8], [0, 1.1]],
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
};
