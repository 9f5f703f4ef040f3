// A panel for moving convolutions between the stages of a network; `stages.py` computes its data.

import type { Answers } from "./asking";
import { button, html, render } from "./controls";
import { count } from "./numbers";

const SOME = 12; // squares per line at most, one per unit
const TASK = "take a unit from the stage that gains least by it, and give it to another.";

interface Costs {
  parameters: number; flops: number;
}

export interface StagesData {
  name: string; depths: number[]; base: Costs; path: number[][];
  stages: { label: string; more: Costs; gains: number[] }[];
}

/** Gain, parameters and FLOPs of the network with `depths[i]` units in stage `i`. */
function totals({ base, stages }: StagesData, depths: number[]) {
  const sum = { gain: 0, ...base };
  stages.forEach(({ gains, more }, i) => {
    for (const gain of gains.slice(0, depths[i] - 1)) sum.gain += gain;
    sum.parameters += (depths[i] - 1) * more.parameters;
    sum.flops += (depths[i] - 1) * more.flops;
  });
  return sum;
}

/** The depths after the organizer's next step; null if its path does not contain `depths`. */
const organizerStep = ({ depths: begin, path }: StagesData, depths: number[]) =>
  path[[begin, ...path].map(String).indexOf(String(depths))] ?? null;

const changeText = (value: number, before: number) => {
  const share = Math.round(100 * (value / before - 1));
  return share ? ` (${share > 0 ? "+" : "−"}${Math.abs(share)} %)` : "";
};

export function stages(
  panel: HTMLElement, data: StagesData, answers: Answers<{ depths: number[]; hand: number }>,
) {
  const begin = { depths: data.depths, hand: 0 }, first = totals(data, data.depths);
  let state = { ...begin, ...answers.read() };
  show();

  function change(newState: Partial<typeof state>) {
    state = { ...state, ...newState };
    show();
  }

  function stageRow({ label, gains }: StagesData["stages"][number], i: number) {
    const { depths, hand } = state, depth = depths[i];
    const move = (name: string, sign: string, by: number, title: string, ariaLabel: string,
      disabled: boolean) => button(`${name} ${i}`, sign, title, () =>
      change({ depths: depths.with(i, depth + by), hand: hand - by }), { disabled, ariaLabel });
    const stage = `stage ${i + 1}`;
    return html`<tr><th scope="row">${i + 1}: ${label}</th><td>${
      move("less", "−", -1, `Take a unit from ${stage}`, `take from ${stage}`, depth <= 1)} ${
      move("more", "+", 1, `Give ${stage} the unit`, `give to ${stage}`,
        hand < 1 || depth >= gains.length)}</td><td class="av-units">${
      depth} ${"▪".repeat(Math.min(depth, SOME))}</td><td>${
      depth > 1 ? gains[depth - 2].toFixed(2) : "–"}</td><td>${
      gains[depth - 1].toFixed(2)}</td></tr>`;
  }

  function show() {
    answers.write(state);
    const { depths, hand } = state, now = totals(data, depths);
    const next = organizerStep(data, depths);
    const head = ["stage", "move", "units", "gain of the last", "of one more"];
    render(html`<p><b>${data.name}: ${TASK}</b></p><div class="av-shown"><div><table><thead><tr>${
      head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead><tbody>${
      data.stages.map(stageRow)}</tbody></table></div></div><div role="status">${
      hand > 0 ? `${count(hand, "unit")} in your hand. ` : ""}Gain ${now.gain.toFixed(2)} (${
      first.gain.toFixed(2)} at the start), ${(now.parameters / 1e6).toFixed(2)} M parameters${
      changeText(now.parameters, first.parameters)}, ${(now.flops / 1e6).toFixed(0)} MFLOPs${
      changeText(now.flops, first.flops)}.</div>${
      button("step", "Next step of the organizer", "Of the chapter's rule",
        () => change({ depths: next! }), { disabled: hand !== 0 || next === null })} ${
      button("back", "Back to the start", "", () => change(begin))}`, panel);
  }
}
