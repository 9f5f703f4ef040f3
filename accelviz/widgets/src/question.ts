// Which setting does best? So many guesses, and then the values of all settings.

import type { Answers } from "./asking";
import { element, pressButton, sliderControl } from "./controls";
import { makeLink } from "./link";
import { count, picture, quietWords, rect, safe } from "./marks";
import { LOADS, widthOf } from "./plot";
import type { Value } from "./types";

const LINE = 26, LEFT = 60; // pixels: of a line of the grid, and beside it

export interface QuestionData {
  question: string;
  explanation: string;
  called: string;
  share: boolean;
  most: boolean;
  guesses: number;
  names: string[];
  choices: Value[][];
  /** NaN where values cannot be had together. */
  values: Float64Array;
}

interface State {
  guessed: number[];
  revealed: boolean;
}

export function question(panel: HTMLElement, data: QuestionData, answers: Answers<State>) {
  const { names, choices, values } = data, lines = choices[1] ?? [null];
  const at = choices.map((offered) => Math.floor(offered.length / 2));
  const state: State = { guessed: [], revealed: false, ...answers.read() };
  const chosen = () => at[0] * lines.length + (at[1] ?? 0);
  const setting = (i: number) => [choices[0][Math.floor(i / lines.length)], lines[i % lines.length]]
    .filter((value) => value !== null).join(" × ");
  const known = [...values].filter((value) => !Number.isNaN(value));
  const better = (a: number, b: number) => (data.most ? a > b : a < b);
  const best = known.reduce((a, b) => (better(b, a) ? b : a));
  const worst = known.reduce((a, b) => (better(a, b) ? b : a));
  const rank = (i: number) => 1 + known.filter((value) => better(value, values[i])).length;
  const written = (value: number) => data.share ? `${(100 * value).toFixed(2)} %`
    : value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const isFound = () => state.guessed.some((i) => values[i] === best);
  const mayReveal = () => isFound() || state.guessed.length >= data.guesses;
  const seen = (i: number) => state.revealed || state.guessed.includes(i);
  const said = (i: number) => `${setting(i)}: ` +
    (seen(i) ? `${written(values[i])}, place ${rank(i)} of ${known.length}.` : "guess first.");

  const sliders = names.map((name, k) => sliderControl(name, name, "", (value) => {
    at[k] = choices[k].indexOf(value);
    show();
  }));
  const guess = pressButton("guess", "Lock this guess in", "", () => {
    state.guessed.push(chosen());
    show();
  });
  const reveal = pressButton("reveal", "Reveal", "Show the values of all settings", () => {
    state.revealed = true;
    show();
  });
  const now = element("p"), list = element("div", { attributes: { role: "status" } });
  const grid = element("div", { className: "av-draw" }), told = element("div");
  panel.append(element("p", {}, [element("b", { textContent: data.question })]),
    element("div", { className: "av-questioned" }, [
      element("div", {}, [...sliders.map(({ box }) => box), now, guess, " ", reveal, list]),
      element("div", {}, [grid, told])]));
  makeLink(panel);
  new ResizeObserver(drawGrid).observe(grid);
  show();

  function show() {
    answers.write(state);
    sliders.forEach((slider, k) => slider.update(choices[k], choices[k][at[k]]));
    const i = chosen(), refused = Number.isNaN(values[i]);
    now.textContent = refused ? `${setting(i)}: these cannot be had together.` : said(i);
    guess.disabled = state.guessed.includes(i) || refused || mayReveal();
    reveal.disabled = !mayReveal() || state.revealed;
    list.innerHTML = guesses();
    told.innerHTML = answer();
    drawGrid();
  }

  function guesses() {
    const left = data.guesses - state.guessed.length;
    const hint = isFound() ? "Found it!"
      : left > 0 ? `${count(left, "guess", "guesses")} left. Think first: what does each ` +
      "parameter do to it?"
        : state.revealed ? "Compare your guesses with the best: what do the settings around it " +
        "share?"
          : "No guess is left: say what you have learned, then reveal the answer.";
    const rows = state.guessed.map((i, k) =>
      `<tr><th scope="row">${k + 1}. ${safe(setting(i))}</th><td>${written(values[i])}</td>` +
      `<td>${values[i] === best ? "best" : `place ${rank(i)}`}</td></tr>`);
    const head = ["guess", "value", `of ${known.length}`]
      .map((name) => `<th scope="col">${name}</th>`).join("");
    return (rows.length ? `<table><thead><tr>${head}</tr></thead><tbody>${rows.join("")}</tbody>` +
      "</table>" : "") + `<p class="av-note">${hint}</p>`;
  }

  function answer() {
    if (!state.revealed) return '<p class="av-note">Locked. Brighter will be better.</p>';
    const all = [...values.keys()].filter((i) => values[i] === best).map(setting);
    const more = all.length > 6 ? ` and ${all.length - 6} others` : "";
    return `<p>Best is ${written(best)}, at ${safe(all.slice(0, 6).join(", ") + more)} (framed). ` +
      `Brighter is better.</p>${data.explanation ? `<p>${safe(data.explanation)}</p>` : ""}`;
  }

  function drawGrid() {
    const across = choices[0].length, width = widthOf(grid), wide = (width - LEFT - 4) / across;
    const high = lines.length > 1 ? LINE : 2 * LINE, bottom = 8 + lines.length * high;
    let drawn = "", over = "";
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const x = LEFT + Math.floor(i / lines.length) * wide, y = 8 + (i % lines.length) * high;
      const cell = (inset: number, look: Parameters<typeof rect>[4]) =>
        rect(x + inset, y + inset, wide - 1 - 2 * inset, high - 1 - 2 * inset, look);
      const share = best === worst ? 0 : (value - best) / (worst - best);
      const fill = seen(i) ? LOADS.light[Math.round(share * (LOADS.light.length - 1))] : null;
      drawn += cell(0, { "class": fill ? null : "av-locked", fill, "data-say": said(i) });
      const framed = state.revealed && value === best;
      if (framed) over += cell(0, { class: "av-best" });
      if (i === chosen()) over += cell(framed ? 2.5 : 0, { class: "av-set" });
    });
    const every = Math.max(1, Math.ceil(26 / wide));
    choices[0].forEach((value, k) => {
      if (k % every === 0) drawn += quietWords(LEFT + (k + 0.5) * wide, bottom + 14, value,
        "middle");
    });
    lines.forEach((value, k) => {
      if (value !== null) drawn += quietWords(LEFT - 6, 8 + (k + 0.65) * high, value, "end");
    });
    drawn += quietWords(LEFT + (across * wide) / 2, bottom + 31, names[0], "middle");
    if (names[1]) drawn += quietWords(0, bottom + 31, names[1]);
    const label = `${data.called} of ${count(known.length, "setting")}` +
      (state.revealed ? "" : ", locked");
    grid.innerHTML = picture(width, bottom + 36, drawn + over, label);
  }
}
