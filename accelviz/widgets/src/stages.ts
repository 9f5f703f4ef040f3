// Convolutions moved between the stages of a network: what each adds, and what all of it costs.

import { element, pressButton } from "./controls";
import { count } from "./marks";


const SOME = 12; // squares in a line of them

/** Gain, weights and FLOPs of a network whose stages have so many units. */
export function totals(data, depths) {
  const found = { gain: 0, parameters: data.base.parameters, flops: data.base.flops };
  data.stages.forEach((stage, i) => {
    found.gain += stage.gains.slice(0, depths[i] - 1).reduce((sum, each) => sum + each, 0);
    for (const name of ["parameters", "flops"]) found[name] += (depths[i] - 1) * stage.more[name];
  });
  return found;
}

/** The step of the organizer after these depths, if it comes by them. */
export function following(data, depths) {
  const path = [data.depths, ...data.path].map(String);
  return data.path[path.indexOf(String(depths))] ?? null;
}

export function stages(panel, data, kept) {
  const state = { depths: [...data.depths], hand: 0, ...kept.read() };
  const most = (i) => data.stages[i].gains.length;
  const change = (i, by) => {
    state.depths[i] += by;
    state.hand -= by;
    show();
  };
  const rows = data.stages.map((stage, i) => {
    const less = pressButton(`less ${i}`, "−", `Take a unit from stage ${i + 1}`, () => change(i, -1));
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
    state.depths = [...following(data, state.depths)];
    show();
  });
  const back = pressButton("back", "Back to the start", "", () => {
    state.depths = [...data.depths];
    state.hand = 0;
    show();
  });
  const head = ["stage", "move", "units", "gain of the last", "of one more"];
  const table = element("table", {}, [
    element("thead", {}, [element("tr", {}, head.map((each) =>
      element("th", { scope: "col", textContent: each })))]),
    element("tbody", {}, rows.map((each) => each.row))]);
  const said = element("div", { attributes: { role: "status" } });
  panel.append(
    element("p", {}, [element("b", { textContent:
      `${data.name}: take a unit from the stage that gains least by it, and give it to another.` })]),
    element("div", { className: "av-shown" }, [element("div", {}, [table])]), said, step, " ", back);
  show();

  function show() {
    kept.write(state);
    const { depths, hand } = state;
    rows.forEach(({ less, more, units, last, next }, i) => {
      less.disabled = depths[i] <= 1;
      more.disabled = hand < 1 || depths[i] >= most(i);
      const { gains } = data.stages[i];
      units.textContent = `${depths[i]} ${"▪".repeat(Math.min(depths[i], SOME))}`;
      last.textContent = depths[i] > 1 ? gains[depths[i] - 2].toFixed(2) : "–";
      next.textContent = gains[depths[i] - 1].toFixed(2);
    });
    step.disabled = hand !== 0 || following(data, depths) === null;
    const now = totals(data, depths), first = totals(data, data.depths);
    const beside = (value, before) => {
      const share = Math.round(100 * (value / before - 1));
      return share ? ` (${share > 0 ? "+" : "−"}${Math.abs(share)} %)` : "";
    };
    const held = hand > 0 ? `${count(hand, "unit")} in your hand. ` : "";
    said.textContent = `${held}Gain ${now.gain.toFixed(2)} (${first.gain.toFixed(2)} at the start), ` +
      `${(now.parameters / 1e6).toFixed(2)} M parameters${beside(now.parameters, first.parameters)}, ` +
      `${(now.flops / 1e6).toFixed(0)} MFLOPs${beside(now.flops, first.flops)}.`;
  }
}
