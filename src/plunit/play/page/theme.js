// Colours, dashes and marks of the activations, and how numbers are written.

const DASHES = { tanh: [7, 4], relu: [2, 3], plu: [], plu_learned: [10, 3, 2, 3], leaky_relu: [4, 2, 1, 2], hardtanh: [12, 3] };
const MARKS = { tanh: "square", relu: "triangle", plu: "circle", plu_learned: "diamond" };
const NAMES = ["ink", "muted", "rule", "card", "paper", "soft", "accent"];

/** The colours that style.css has for the root now, light or dark. */
export function coloursOf(root) {
  const style = getComputedStyle(root);
  const one = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = Object.fromEntries(NAMES.map((name) => [name, one(name)]));
  return { ...colours, of: (activation) => one(activation) || colours.muted };
}

/** What tells an activation apart beside its colour: dash of its line, mark on it, and width. */
export function lookOf(activation) {
  const dash = DASHES[activation] ?? [5, 2, 1, 2];
  return { dash, mark: MARKS[activation] ?? "square", width: activation === "plu" ? 2.5 : 1.75 };
}

/** A loss in three digits: 0.0157, 2.65, 3.1e-6. */
export function lossText(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "none";
  if (value === 0) return "0";
  if (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e4) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

export function countText(value) {
  return Math.round(value).toLocaleString("en");
}

/** A large number in few letters: 950, 12.3 thousand, 4.1 million. */
export function largeText(value) {
  if (!Number.isFinite(value) || value <= 0) return "-";
  const [unit, word] = value >= 1e6 ? [1e6, " million"] : value >= 1e4 ? [1e3, " thousand"] : [1, ""];
  return unit === 1 ? countText(value) : (value / unit).toFixed(value / unit < 100 ? 1 : 0) + word;
}

/** An axis number without rounding noise: 0.5, -6, 1e-3. */
export function tickText(value) {
  return Math.abs(value) < 1e-12 ? "0" : String(Number(value.toPrecision(4))).replace("-", "\u2212");
}

/** 256 colours [r, g, b, a] for the bytes of a density: nothing, then the colour, denser and denser. */
export function cloudColours(colour) {
  const [r, g, b] = channelsOf(colour);
  return Array.from({ length: 256 }, (_, i) => [r, g, b, i === 0 ? 0 : Math.round(255 * (0.05 + 0.75 * (i / 255) ** 1.2))]);
}

const STOPS = ["#2b3a78", "#2c6f96", "#3f9d8f", "#8cc283", "#e3dc93", "#fdf3cf"];

/** 256 colours for the values of a surface, dark for low ones: their lightness rises evenly, so that they work without hue. */
export function heightColours() {
  const stops = STOPS.map(channelsOf);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    return [...stops[left].map((value, k) => Math.round(value + (at - left) * (stops[left + 1][k] - value))), 255];
  });
}

function channelsOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
