// Five steps that tell what PLU is about, each with networks that learn while one reads.
import { lossText } from "./theme.js";

const SINE = { target: { kind: "paper", name: "sine" }, alpha: 0.1, c: 1, depth: 2, width: 3, lr: 0.01, networks: 1000, seed: 0 };

const losses = (panels, title) => `Median loss now: ${panels.map((panel) => `${title(panel)} ${lossText(panel.losses.middle.at(-1))}`).join(", ")}.`;
const percent = (share) => (share === null || share === undefined ? "not counted" : `${Math.round(100 * share)} %`);

const STEPS = [
  {
    title: "Three activations, one sine",
    text: "Each panel shows 1,000 networks that learn the same sine. Each network has two hidden layers of three units. The networks "
      + "differ in their random start only. The cloud is all of them. Watch which clouds close in on the curve: those of tanh and PLU do.",
    settings: { ...SINE, activations: ["tanh", "relu", "plu"] },
    live: losses,
  },
  {
    title: "Why ReLU fails on the sine",
    text: "ReLU is 0 on its left side. A unit whose input is negative everywhere gives 0 and learns nothing more. Every unit has one kink "
      + "only, and six units are few. So most ReLU networks follow one or two waves and stay flat on the rest. PLU bends twice in each "
      + "unit, and its outer slope is never 0.",
    settings: { ...SINE, activations: ["relu", "plu"] },
    live: losses,
  },
  {
    title: "What alpha and c do",
    text: "PLU has slope 1 between \u2212c and c, and slope alpha outside. With alpha = 1 PLU is a straight line, and so is every network. "
      + "With alpha = 0 its ends are flat, and gradients vanish there. The paper takes alpha = 0.1 and c = 1. Try others, or move the sliders. "
      + "Learned PLU finds its own alpha and c in each layer; its graph is the thin one.",
    settings: { ...SINE, activations: ["plu", "plu_learned"] },
    tries: [{ alpha: 0 }, { alpha: 0.1 }, { alpha: 0.5 }, { alpha: 1 }, { alpha: 0.1, c: 0.25 }, { alpha: 0.1, c: 3 }],
    spot: ".shape",
    live: losses,
  },
  {
    title: "A network is made of straight pieces",
    text: "A network of PLU or ReLU is straight between its knots. The small circles are the knots of the best network, computed exactly. "
      + "PLU has two kinks in each unit, so the same six units make more pieces. More pieces follow a wave better.",
    settings: { ...SINE, activations: ["relu", "leaky_relu", "plu"] },
    spot: "[data-spot=pieces]",
    live: (panels, title) => `Pieces of the median network: ${panels.map((p) => `${title(p)} ${p.pieces ? Math.round(p.pieces.middle) : "not counted"}`).join(", ")}.`,
  },
  {
    title: "Units that die",
    text: "A unit is dead when its slope is 0 at every point: no gradient reaches it, so it stays dead. ReLU units die, most of all "
      + "with a high learning rate as here. PLU has no flat side, so no PLU unit dies. The table below counts them.",
    settings: { ...SINE, activations: ["relu", "plu"], lr: 0.03 },
    spot: "[data-spot=dead]",
    live: (panels, title) => `Dead units now: ${panels.map((panel) => `${title(panel)} ${percent(panel.dead)}`).join(", ")}.`,
  },
];

export class Tour {
  /** begin(settings) puts settings into the form and starts. */
  constructor(root, begin) {
    Object.assign(this, { root, begin, at: -1 });
    const go = { "tour-back": () => this.go(this.at - 1), "tour-next": () => this.go(this.at + 1), "tour-end": () => this.end(), tour: () => this.go(0) };
    for (const [name, act] of Object.entries(go)) root.querySelector(`[data-do="${name}"]`).addEventListener("click", act);
  }

  part(name) {
    return this.root.querySelector(`[data-part="tour${name}"]`);
  }

  go(at) {
    if (at >= STEPS.length) return this.end();
    this.at = Math.max(0, at);
    const step = STEPS[this.at];
    this.part("").hidden = false;
    this.part("-count").textContent = `Step ${this.at + 1} of ${STEPS.length}`;
    this.part("-title").textContent = step.title;
    this.part("-text").textContent = step.text;
    this.part("-live").textContent = "";
    this.root.querySelector('[data-do="tour-back"]').disabled = this.at === 0;
    this.root.querySelector('[data-do="tour-next"]').textContent = this.at + 1 === STEPS.length ? "Done" : "Next";
    this.part("-tries").replaceChildren(...(step.tries ?? []).map((change) => this.button(step, change)));
    this.light(step.spot);
    this.begin(step.settings);
    this.part("-title").focus();
  }

  button(step, change) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = Object.entries(change).map(([name, value]) => `${name} = ${value}`).join(", ");
    button.addEventListener("click", () => this.begin({ ...step.settings, ...change }));
    return button;
  }

  light(spot) {
    for (const old of this.root.querySelectorAll(".spot")) old.classList.remove("spot");
    if (spot) this.root.querySelector(spot).classList.add("spot");
  }

  end() {
    this.at = -1;
    this.part("").hidden = true;
    this.light("");
    this.root.querySelector('[data-do="tour"]').focus();
  }

  /** Put the numbers of now below the text. */
  show(panels, titles) {
    if (this.at < 0 || !panels.length) return;
    this.part("-live").textContent = STEPS[this.at].live(panels, (panel) => titles[panel.activation]);
  }
}
