// A question for a class: the learner guesses the best setting, then sees the values of all. The
// grid has a cell per setting; `question.py` computes its data.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import type { Answers } from "./asking";
import { button, html, render, slider } from "./controls";
import { makeLink } from "./link";
import { picture, mutedText, rect } from "./marks";
import { count } from "./numbers";
import { LOADS, widthOf } from "./plot";
import type { Value } from "./types";

const LINE = 26, LEFT = 60; // pixels: height of a line of the grid, and room to its left

export interface QuestionData {
  question: string; explanation: string; label: string; share: boolean; most: boolean;
  guesses: number; names: string[]; choices: Value[][];
  /** One value per setting, the last parameter varying fastest; NaN for refused settings. */
  values: Float64Array;
}

interface State {
  guessed: number[]; revealed: boolean;
}

export function question(panel: HTMLElement, data: QuestionData, answers: Answers<State>) {
  const { names, choices, values } = data, lines = choices[1] ?? [null];
  const chosen = choices.map((offered) => Math.floor(offered.length / 2));
  let note = ""; // what is told of a typed number
  const state: State = { guessed: [], revealed: false, ...answers.read() };
  const nameOf = (i: number) => [choices[0][Math.floor(i / lines.length)], lines[i % lines.length]]
    .filter((value) => value !== null).join(" × ");
  const known = [...values].filter((value) => !Number.isNaN(value));
  const isBetter = (a: number, b: number) => (data.most ? a > b : a < b);
  const best = known.reduce((a, b) => (isBetter(b, a) ? b : a));
  const worst = known.reduce((a, b) => (isBetter(a, b) ? b : a));
  const rank = (i: number) => 1 + known.filter((value) => isBetter(value, values[i])).length;
  const valueText = (value: number) => data.share ? `${(100 * value).toFixed(2)} %`
    : value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const isBestGuessed = () => state.guessed.some((i) => values[i] === best);
  const isShown = (i: number) => state.revealed || state.guessed.includes(i);
  const settingText = (i: number) => `${nameOf(i)}: ` +
    (isShown(i) ? `${valueText(values[i])}, place ${rank(i)} of ${known.length}.` : "guess first.");
  makeLink(panel);
  show();
  new ResizeObserver(show).observe(panel);

  function show() {
    answers.write(state);
    const i = chosen[0] * lines.length + (chosen[1] ?? 0), isRefused = Number.isNaN(values[i]);
    const mayReveal = isBestGuessed() || state.guessed.length >= data.guesses;
    const isLocked = state.guessed.includes(i) || isRefused || mayReveal;
    const guess = () => {
      state.guessed.push(i);
      show();
    };
    const reveal = () => {
      state.revealed = true;
      show();
    };
    const choose = (k: number, value: Value) => {
      const index = choices[k].indexOf(value);
      if (index !== chosen[k]) note = ""; // the note concerned the value before
      chosen[k] = index;
      show();
    };
    const tell = (text: string) => {
      note = text;
      show();
    };
    const grid = panel.querySelector<HTMLElement>(".av-grid");
    render(html`<p><b>${data.question}</b></p><div class="av-questioned"><div>${
      names.map((name, k) => slider(name, name, "", choices[k], choices[k][chosen[k]],
        (value) => choose(k, value), tell))}<p role="status" ?hidden=${!note}>${note}</p><p>${
      isRefused ? `${nameOf(i)}: these cannot be had together.` : settingText(i)}</p>${
      button("guess", "Lock this guess in", "", guess, { disabled: isLocked })} ${
      button("reveal", "Reveal", "Show the values of all settings", reveal,
        { disabled: !mayReveal || state.revealed })}<div role="status">${
      guessTable()}</div></div><div>
      <div class="av-draw av-grid">${unsafeHTML(gridOf(i, grid ? widthOf(grid) : 280))}</div><div>${
        answerView()}</div></div></div>`, panel);
  }

  function guessTable() {
    const left = data.guesses - state.guessed.length;
    const hint = isBestGuessed() ? "Found it!"
      : left > 0 ? `${count(left, "guess", "guesses")} left. Think first: what does each ` +
      "parameter do to it?"
        : state.revealed ? "Compare your guesses with the best: what do the settings around it " +
        "share?"
          : "No guess is left: say what you have learned, then reveal the answer.";
    const head = ["guess", "value", `of ${known.length}`];
    return html`${state.guessed.length ? html`<table><thead><tr>${head.map((name) =>
      html`<th scope="col">${name}</th>`)}</tr></thead><tbody>${state.guessed.map((i, k) =>
      html`<tr><th scope="row">${k + 1}. ${nameOf(i)}</th><td>${valueText(values[i])}</td><td>${
        values[i] === best ? "best" : `place ${rank(i)}`}</td></tr>`)}</tbody></table>` : ""}<p
      class="av-note">${hint}</p>`;
  }

  function answerView() {
    if (!state.revealed) return html`<p class="av-note">Locked. Brighter will be better.</p>`;
    const all = [...values.keys()].filter((i) => values[i] === best).map(nameOf);
    const more = all.length > 6 ? ` and ${all.length - 6} others` : "";
    return html`<p>Best is ${valueText(best)}, at ${all.slice(0, 6).join(", ") + more} (framed).
      Brighter is better.</p>${data.explanation && html`<p>${data.explanation}</p>`}`;
  }

  function gridOf(chosen: number, width: number) {
    const columnCount = choices[0].length, cellWidth = (width - LEFT - 4) / columnCount;
    const cellHeight = lines.length > 1 ? LINE : 2 * LINE, bottom = 8 + lines.length * cellHeight;
    let drawn = "", frames = "";
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const x = LEFT + Math.floor(i / lines.length) * cellWidth;
      const y = 8 + (i % lines.length) * cellHeight;
      const cell = (inset: number, look: Parameters<typeof rect>[4]) =>
        rect(x + inset, y + inset, cellWidth - 1 - 2 * inset, cellHeight - 1 - 2 * inset, look);
      const share = best === worst ? 0 : (value - best) / (worst - best);
      const fill = isShown(i) ? LOADS.light[Math.round(share * (LOADS.light.length - 1))] : null;
      drawn += cell(0, { "class": fill ? null : "av-locked", fill, "data-say": settingText(i) });
      const isBest = state.revealed && value === best;
      if (isBest) frames += cell(0, { class: "av-best" });
      if (i === chosen) frames += cell(isBest ? 2.5 : 0, { class: "av-set" });
    });
    const labelEvery = Math.max(1, Math.ceil(26 / cellWidth));
    choices[0].forEach((value, k) => {
      if (k % labelEvery === 0) drawn += mutedText(LEFT + (k + 0.5) * cellWidth, bottom + 14, value,
        "middle");
    });
    lines.forEach((value, k) => {
      if (value !== null) drawn += mutedText(LEFT - 6, 8 + (k + 0.65) * cellHeight, value, "end");
    });
    drawn += mutedText(LEFT + (columnCount * cellWidth) / 2, bottom + 31, names[0], "middle");
    if (names[1]) drawn += mutedText(0, bottom + 31, names[1]);
    const label = `${data.label} of ${count(known.length, "setting")}` +
      (state.revealed ? "" : ", locked");
    return picture(width, bottom + 36, drawn + frames, label);
  }
}
