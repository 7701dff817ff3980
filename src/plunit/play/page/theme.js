// Colours, dashes and marks of the activations, and how numbers are written.

const DASHES = { tanh: [7, 4], relu: [2, 3], plu: [], plu_learned: [10, 3, 2, 3], leaky_relu: [4, 2, 1, 2], hardtanh: [12, 3] };
const MARKS = { tanh: "square", relu: "triangle", plu: "circle", plu_learned: "diamond" };
const STOPS = ["#2b3a78", "#2c6f96", "#3f9d8f", "#8cc283", "#e3dc93", "#fdf3cf"];

/** Return a function that finds an element by its data-part or data-do. */
export const finder = (root, kind) => (name) => root.querySelector(`[data-${kind}="${name}"]`);

/** The colours that style.css has for the root now, light or dark. */
export function coloursOf(root) {
  const [style, found] = [getComputedStyle(root), {}];
  const of = (name) => (found[name] ??= style.getPropertyValue(`--${name}`).trim() || of("ink"));
  return { of, ...Object.fromEntries(["ink", "muted", "rule", "card", "accent"].map((name) => [name, of(name)])) };
}

/** How activations differ besides their colour: the dash, the mark and the width of the line. */
export function lookOf(activation) {
  return { dash: DASHES[activation] ?? [5, 2, 1, 2], mark: MARKS[activation] ?? "square", width: activation === "plu" ? 2.5 : 1.75 };
}

/** A loss in two or three digits: 0.016, 2.65, 3.1e-6. */
export function lossText(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "none";
  if (value >= 1000 && value < 1e6) return countText(value);
  if (value !== 0 && (value < 1e-4 || value >= 1e6)) return value.toExponential(1).replace("e+", "e");
  return value.toPrecision(value < 0.1 ? 2 : 3);
}

export const countText = (value) => Math.round(value).toLocaleString("en");

/** The number of pieces, median and 5 to 95 %. */
export function piecesText(pieces) {
  if (!pieces) return "-";
  const [low, middle, high] = [pieces.low, pieces.middle, pieces.high].map(countText);
  return low === high ? middle : `${middle} (${low} to ${high})`;
}

/** A large number in few letters: 950, 12.3 k, 4.1 M. */
export function largeText(value) {
  const [unit, letter] = value >= 1e6 ? [1e6, " M"] : value >= 1e4 ? [1e3, " k"] : [1, ""];
  return letter ? (value / unit).toFixed(value / unit < 100 ? 1 : 0) + letter : countText(value);
}

/** An axis number without rounding noise: 0.5, -6, 10,000, 1e-4. */
export function tickText(value) {
  const [number, size] = [Number(value.toPrecision(4)), Math.abs(value)];
  const text = size > 1e-12 && (size < 1e-3 || size >= 1e5) ? number.toExponential() : size < 1e4 ? String(number) : countText(number);
  return text.replace("+", "").replaceAll("-", "\u2212");
}

const channelsOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** 256 colours [r, g, b, a] for the bytes of a density: nothing, then the colour, denser and denser. */
export function cloudColours(colour) {
  return Array.from({ length: 256 }, (_, i) => [...channelsOf(colour), i && Math.round(255 * (0.05 + 0.75 * (i / 255) ** 1.2))]);
}

/** 256 colours for the values of a surface, dark for low ones. Lightness is enough to read them. */
export function heightColours() {
  const stops = STOPS.map(channelsOf);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    return [...stops[left].map((value, k) => Math.round(value + (at - left) * (stops[left + 1][k] - value))), 255];
  });
}
