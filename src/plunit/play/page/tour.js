// The tour: five steps, written in index.html, each with networks that learn while you read.
import { finder, lossText } from "./theme.js";

const SINE = { target: { kind: "paper", name: "sine" }, alpha: 0.1, c: 1, depth: 2, width: 3, lr: 0.01, networks: 1000, seed: 0 };

const LIVE = {
  losses: ["Median loss now", (panel) => lossText(panel.losses.middle.at(-1))],
  pieces: ["Pieces of the median network", (panel) => (panel.pieces ? Math.round(panel.pieces.middle) : "not yet counted")],
  dead: ["Dead units now", (panel) => `${((panel.dead ?? 0) * 100).toFixed(1)} %`],
};

export class Tour {
  /** begin(settings) puts settings into the form and starts. */
  constructor(root, begin) {
    Object.assign(this, { root, begin, at: -1, part: finder(root, "part"), button: finder(root, "do"), steps: root.querySelectorAll(".tour template") });
    const acts = { tour: () => this.go(0), "tour-back": () => this.go(this.at - 1), "tour-next": () => this.go(this.at + 1), "tour-end": () => this.end() };
    for (const [name, act] of Object.entries(acts)) this.button(name).addEventListener("click", act);
  }

  go(at) {
    if (at >= this.steps.length) return this.end();
    const step = this.steps[at];
    const settings = { ...SINE, activations: step.dataset.activations.split(" "), lr: Number(step.dataset.lr ?? SINE.lr) };
    this.at = at;
    this.part("tour").hidden = false;
    this.part("tour-count").textContent = `Step ${at + 1} of ${this.steps.length}`;
    this.part("tour-text").replaceChildren(step.content.cloneNode(true));
    this.part("tour-live").textContent = "";
    for (const button of this.part("tour-text").querySelectorAll("[data-try]")) {
      button.addEventListener("click", () => this.begin({ ...settings, ...JSON.parse(button.dataset.try) }));
    }
    this.button("tour-back").disabled = at === 0;
    this.button("tour-next").textContent = at + 1 === this.steps.length ? "Done" : "Next";
    this.light("");
    this.part("tour-text").querySelector("h2").focus({ preventScroll: true });
    this.begin(settings)?.then(() => this.at === at && this.light(step.dataset.spot));
  }

  /** Outline the part of the page that a step describes; on a narrow page, where the text stays on top, scroll to it. */
  light(spot) {
    for (const old of this.root.querySelectorAll(".spot")) old.classList.remove("spot");
    if (!spot) return;
    const part = this.root.querySelector(spot);
    part.classList.add("spot");
    if (getComputedStyle(this.part("tour")).position !== "sticky") return;
    part.closest("details")?.setAttribute("open", "");
    part.scrollIntoView();
  }

  end() {
    this.at = -1;
    this.part("tour").hidden = true;
    this.light("");
    this.button("tour").focus();
  }

  /** Show the current numbers below the text. */
  show(panels, titles) {
    const step = this.steps[this.at]?.dataset;
    if (!step || !panels.every((panel) => step.activations.split(" ").includes(panel.activation))) return; // of the previous step
    const [words, number] = LIVE[step.live];
    this.part("tour-live").textContent = `${words}: ${panels.map((panel) => `${titles[panel.activation]} ${number(panel)}`).join(", ")}.`;
  }
}
