// Convolutions moved between the stages of a network: what each adds, and what all of it costs.

import type { Answers } from "./asking";
import { element, pressButton } from "./controls";
import { count } from "./marks";

const SOME = 12; // squares in a line of them

interface Costs {
  parameters: number;
  flops: number;
}

export interface StagesData {
  name: string;
  depths: number[];
  base: Costs;
  stages: { label: string; more: Costs; gains: number[] }[];
  path: number[][];
}

interface State {
  depths: number[];
  hand: number;
}

/** Gain, weights and FLOPs of a network whose stages have so many units. */
function totals({ base, stages }: StagesData, depths: number[]) {
  const sum = { gain: 0, ...base };
  stages.forEach(({ gains, more }, i) => {
    for (const gain of gains.slice(0, depths[i] - 1)) sum.gain += gain;
    sum.parameters += (depths[i] - 1) * more.parameters;
    sum.flops += (depths[i] - 1) * more.flops;
  });
  return sum;
}

/** The step of the organizer after these depths, if it comes by them. */
function following({ depths: begin, path }: StagesData, depths: number[]) {
  return path[[begin, ...path].map(String).indexOf(String(depths))] ?? null;
}

export function stages(panel: HTMLElement, data: StagesData, answers: Answers<State>) {
  const state: State = { depths: [...data.depths], hand: 0, ...answers.read() };
  const change = (i: number, by: number) => {
    state.depths[i] += by;
    state.hand -= by;
    show();
  };
  const rows = data.stages.map((stage, i) => {
    const less = pressButton(`less ${i}`, "−", `Take a unit from stage ${i + 1}`,
      () => change(i, -1));
    const more = pressButton(`more ${i}`, "+", `Give stage ${i + 1} the unit`, () => change(i, 1));
    less.setAttribute("aria-label", `take from stage ${i + 1}`);
    more.setAttribute("aria-label", `give to stage ${i + 1}`);
    const units = element("td", { className: "av-units" });
    const last = element("td"), next = element("td");
    const row = element("tr", {}, [
      element("th", { scope: "row", textContent: `${i + 1}: ${stage.label}` }),
      element("td", {}, [less, " ", more]), units, last, next]);
    return { row, less, more, units, last, next };
  });
  const step = pressButton("step", "Next step of the organizer", "Of the chapter's rule", () => {
    state.depths = [...following(data, state.depths)!];
    show();
  });
  const back = pressButton("back", "Back to the start", "", () => {
    Object.assign(state, { depths: [...data.depths], hand: 0 });
    show();
  });
  const head = ["stage", "move", "units", "gain of the last", "of one more"];
  const table = element("table", {}, [
    element("thead", {}, [element("tr", {}, head.map((name) =>
      element("th", { scope: "col", textContent: name })))]),
    element("tbody", {}, rows.map(({ row }) => row))]);
  const said = element("div", { attributes: { role: "status" } });
  const task = "take a unit from the stage that gains least by it, and give it to another.";
  panel.append(
    element("p", {}, [element("b", { textContent: `${data.name}: ${task}` })]),
    element("div", { className: "av-shown" }, [element("div", {}, [table])]), said, step, " ",
    back);
  show();

  function show() {
    answers.write(state);
    const { depths, hand } = state;
    rows.forEach(({ less, more, units, last, next }, i) => {
      const { gains } = data.stages[i];
      less.disabled = depths[i] <= 1;
      more.disabled = hand < 1 || depths[i] >= gains.length;
      units.textContent = `${depths[i]} ${"▪".repeat(Math.min(depths[i], SOME))}`;
      last.textContent = depths[i] > 1 ? gains[depths[i] - 2].toFixed(2) : "–";
      next.textContent = gains[depths[i] - 1].toFixed(2);
    });
    step.disabled = hand !== 0 || following(data, depths) === null;
    const now = totals(data, depths), first = totals(data, data.depths);
    const beside = (value: number, before: number) => {
      const share = Math.round(100 * (value / before - 1));
      return share ? ` (${share > 0 ? "+" : "−"}${Math.abs(share)} %)` : "";
    };
    said.textContent = `${hand > 0 ? `${count(hand, "unit")} in your hand. ` : ""}` +
      `Gain ${now.gain.toFixed(2)} (${first.gain.toFixed(2)} at the start), ` +
      `${(now.parameters / 1e6).toFixed(2)} M parameters` +
      `${beside(now.parameters, first.parameters)}, ` +
      `${(now.flops / 1e6).toFixed(0)} MFLOPs${beside(now.flops, first.flops)}.`;
  }
}
