// A prediction: a number, one of several choices, all of them in order, or bars that are drawn.
// Only then the answer is shown, and how good the prediction was.

import type { Answers } from "./asking";
import { bars, type BarsData } from "./bars";
import { element, pressButton, quiet } from "./controls";
import { safe } from "./marks";

const NO_NUMBER = "That is no number. Expected: a number, such as 12 or 0.5.";

type Answer = number | string | string[] | number[];

export interface PredictionData extends Omit<BarsData, "answer"> {
  form: "number" | "choice" | "order" | "drawn";
  question: string;
  choices: string[];
  within: number;
  answer: Answer;
  because: string;
}

/** A number with three digits, or whole where it is. */
function figures(value: number) {
  if (Number.isInteger(value) || Math.abs(value) >= 1000)
    return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(3)));
}

function written({ unit }: PredictionData, value: Answer) {
  if (Array.isArray(value)) return value.map((one, i) => `${i + 1}. ${one}`).join(", ");
  return typeof value === "string" ? value : `${figures(value)} ${unit}`.trimEnd();
}

/** The number that somebody typed, NaN if it is none. */
export function typed(text: string, unit: string) {
  let bare = text.replaceAll(",", "").trim();
  if (unit && bare.endsWith(unit)) bare = bare.slice(0, -unit.length);
  bare = bare.replace(/%\s*$/, "").trim();
  return bare && Number.isFinite(Number(bare)) ? Number(bare) : NaN;
}

/** How good a prediction was. */
export function judged(data: PredictionData, predicted: Answer) {
  const { form, answer, within } = data;
  if (form === "drawn") {
    const [mine, truth] = [predicted, answer] as number[][];
    const sum = (pick: typeof Math.min) =>
      truth.reduce((all, value, i) => all + pick(value, mine[i]), 0);
    const share = sum(Math.min) / (sum(Math.max) || 1);
    return share === 1 ? "Right."
      : `Your bars and the right ones have ${Math.floor(100 * share)} % in common.`;
  }
  if (form === "order") {
    const [mine, truth] = [predicted, answer] as string[][];
    const agreeing = truth.filter((one, i) => one === mine[i]).length;
    return agreeing === truth.length ? "Right." : `${agreeing} of ${truth.length} places agree.`;
  }
  if (written(data, predicted) === written(data, answer)) return "Right.";
  if (form === "choice") return "Not so.";
  const [mine, truth] = [predicted, answer] as number[];
  if (mine * truth <= 0) return `Off by ${written(data, Math.abs(mine - truth))}.`;
  const factor = Math.max(mine / truth, truth / mine);
  if (factor > within) return `Too ${mine > truth ? "high" : "low"} by a factor of ` +
    `${figures(factor)}.`;
  return `Close: ${figures(mine / truth)} times that.`;
}

export function prediction(panel: HTMLElement, data: PredictionData, answers: Answers<Answer>) {
  const box = element("div", { className: "av-asking" });
  const result = element("div",
    { className: "av-shown", tabIndex: -1, attributes: { role: "status" } });
  panel.append(element("p", { innerHTML: `<b>Prediction.</b> ${data.question}` }), box, result);
  const before = answers.read();
  if (before === null) FORMS[data.form](box, data, lock);
  else show(before);

  function lock(value: Answer) {
    answers.write(value);
    box.replaceChildren();
    show(value);
    result.focus(); // so that Tab goes on from here
  }

  function show(value: Answer) {
    const drawing = element("div"), verdict = safe(judged(data, value));
    const isDrawn = data.form === "drawn";
    if (isDrawn) bars(drawing, data as BarsData, value as number[], null);
    result.innerHTML = isDrawn ? `<p>${verdict}</p>`
      : `<p>You said <b>${safe(written(data, value))}</b>. It is ` +
        `<b>${safe(written(data, data.answer))}</b>. ${verdict}</p>`;
    result.append(drawing, element("div", { innerHTML: data.because }));
  }
}

type Form = (box: HTMLElement, data: PredictionData, lock: (value: Answer) => void) => void;

const lockButton = (act: () => void) => pressButton("lock", "Lock it in", "Show the answer", act);

const FORMS: Record<PredictionData["form"], Form> = {
  number(box, { unit }, lock) {
    const field = quiet(element("input",
      { type: "text", size: 12, autocomplete: "off", dataset: { control: "typed" } }));
    const wrong = element("span", { className: "av-wrong", attributes: { role: "alert" } });
    const take = () => {
      const value = typed(field.value, unit);
      if (Number.isNaN(value)) wrong.textContent = NO_NUMBER;
      else lock(value);
    };
    field.onkeydown = (event) => {
      if (event.key === "Enter") take();
    };
    box.append(element("label", {}, ["Your number ", field, ` ${unit} `]), lockButton(take), wrong);
  },

  choice(box, { choices }, lock) {
    box.append(...choices.map((one, i) => pressButton(`choice ${i}`, one, "", () => lock(one))));
    box.classList.add("av-choices");
  },

  // Pressed one after the other; a second press takes one back, and the last place is implied.
  order(box, { choices }, lock) {
    const picked: string[] = [];
    const buttons = choices.map((one, i) => pressButton(`choice ${i}`, one, "", () => {
      if (picked.includes(one)) picked.splice(picked.indexOf(one), 1);
      else picked.push(one);
      const left = choices.filter((other) => !picked.includes(other));
      if (left.length <= 1) return lock([...picked, ...left]);
      choices.forEach((other, k) => {
        const rank = picked.indexOf(other) + 1;
        buttons[k].textContent = rank ? `${rank}. ${other}` : other;
      });
    }));
    box.append(element("p", { className: "av-note",
      textContent: "Press them in order; press again to take one back." }), ...buttons);
    box.classList.add("av-choices");
  },

  drawn(box, data, lock) {
    const canvas = element("div"), values = (data.answer as number[]).map(() => 0);
    box.append(element("p", { className: "av-note", textContent: "Draw with the pointer, or with " +
      `the arrow keys: left and right choose the ${data.bar}, up and down its height.` }), canvas,
    lockButton(() => lock(values)));
    bars(canvas, data as BarsData, values, (index, value) => (values[index] = value));
  },
};
