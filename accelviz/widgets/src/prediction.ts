// A prediction: the learner enters a number, a choice, an order of choices, or bars. Afterwards the
// answer is shown, with a verdict on the prediction.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import type { Answers } from "./asking";
import { bars, type BarsData } from "./bars";
import { button, html, render } from "./controls";
import { number } from "./numbers";
import { parseNumber } from "./typed";

type Answer = number | string | string[] | number[];

export interface PredictionData extends Omit<BarsData, "answer"> {
  form: "number" | "choice" | "order" | "drawn"; question: string; choices: string[];
  within: number; answer: Answer;
  /** Further answers that are as right, of a number or a choice. */
  also: (number | string)[];
  /** HTML of the explanation, and of the pictures before it. */
  because: string; pictures: string;
}

/** A number with three significant digits; whole if it is an integer or at least 1000. */
const threeDigits = (value: number) => Number.isInteger(value) || Math.abs(value) >= 1000
  ? number(Math.round(value)) : String(Number(value.toPrecision(3)));

function answerText({ unit }: PredictionData, value: Answer) {
  if (Array.isArray(value)) return value.map((choice, i) => `${i + 1}. ${choice}`).join(", ");
  return typeof value === "string" ? value : `${threeDigits(value)} ${unit}`.trimEnd();
}

const rightAnswers = ({ answer, also }: PredictionData): Answer[] => [answer, ...also];

/** Whether an answer, as it is shown, is one of the right ones. */
const isRight = (data: PredictionData, answered: Answer) =>
  rightAnswers(data).some((answer) => answerText(data, answer) === answerText(data, answered));

export function verdict(data: PredictionData, predicted: Answer) {
  const { form, within } = data;
  let { answer } = data;
  if (form === "drawn") {
    const [drawn, truth] = [predicted, answer] as number[][];
    const sum = (pick: typeof Math.min) =>
      truth.reduce((all, value, i) => all + pick(value, drawn[i]), 0);
    const share = sum(Math.min) / (sum(Math.max) || 1);
    return share === 1 ? "Right."
      : `Your bars and the right ones have ${Math.floor(100 * share)} % in common.`;
  }
  if (form === "order") {
    const [entered, truth] = [predicted, answer] as string[][];
    const agreeing = truth.filter((item, i) => item === entered[i]).length;
    return agreeing === truth.length ? "Right." : `${agreeing} of ${truth.length} places agree.`;
  }
  if (isRight(data, predicted)) return "Right.";
  const distance = (one: Answer) => Math.abs(Number(one) - Number(predicted));
  answer = rightAnswers(data).reduce((a, b) => (distance(b) < distance(a) ? b : a));
  const [entered, truth] = [predicted, answer] as number[];
  if (entered * truth <= 0) return `Off by ${answerText(data, Math.abs(entered - truth))}.`;
  const factor = Math.max(entered / truth, truth / entered);
  if (factor > within) return `Too ${entered > truth ? "high" : "low"} by a factor of ` +
    `${threeDigits(factor)}.`;
  return `Close: ${threeDigits(entered / truth)} times that.`;
}

export function prediction(panel: HTMLElement, data: PredictionData, answers: Answers<Answer>) {
  const { form, choices, unit, bar } = data;
  let answer = answers.read(), errorMessage = "";
  const picked: string[] = [];
  const heights = form === "drawn" ? (data.answer as number[]).map(() => 0) : [];
  const lockButton = (act: () => void) => button("lock", "Lock it in", "Show the answer", act);
  const choiceButtons = (label: (one: string) => string, act: (one: string) => void) =>
    choices.map((choice, i) => button(`choice ${i}`, label(choice), "", () => act(choice)));
  show();

  function lock(value: Answer) {
    answers.write(answer = value);
    show();
    panel.querySelector<HTMLElement>(".av-shown")!.focus(); // Tab continues from here
  }

  function submitNumber() {
    const value = parseNumber(panel.querySelector("input")!.value, unit, data.question);
    if (typeof value === "number") return lock(value);
    errorMessage = value;
    show();
  }

  /** Append a choice to the order, or remove it; the last choice is appended automatically. */
  function pick(choice: string) {
    if (picked.includes(choice)) picked.splice(picked.indexOf(choice), 1);
    else picked.push(choice);
    const left = choices.filter((other) => !picked.includes(other));
    if (left.length <= 1) return lock([...picked, ...left]);
    show();
  }

  function inputForm() {
    if (form === "number")
      return html`<label>Your number <input type="text" size="12" autocomplete="off"
        data-control="typed" data-lm-suppress-shortcuts="true"
        @keydown=${({ key }: KeyboardEvent) =>
          key === "Enter" && submitNumber()}> ${unit} </label>${
          lockButton(submitNumber)}<span class="av-wrong" role="alert">${errorMessage}</span>`;
    if (form === "choice") return choiceButtons((text) => text, lock);
    if (form === "order")
      return html`<p class="av-note">Press them in order; press again to take one back.</p>${
        choiceButtons((choice) =>
          picked.includes(choice) ? `${picked.indexOf(choice) + 1}. ${choice}` : choice, pick)}`;
    return html`<p class="av-note">Draw with the pointer, or with the arrow keys: left and right
      choose the ${bar}, up and down its height.</p><div class="av-drawing"></div>${
        lockButton(() => lock(heights))}`;
  }

  /** The learner's answer beside the right one; a choice goes on with the explanation. */
  function comparison(answered: Answer) {
    if (form === "drawn")
      return html`<p>${verdict(data, answered)}</p><div class="av-drawing"></div>`;
    const yours = answerText(data, answered);
    const expected = rightAnswers(data).map((value) => answerText(data, value));
    if (form !== "choice") return html`<p>You said <b>${yours}</b>. It is <b>${
      expected.join(" or ")}</b>. ${verdict(data, answered)}</p>`;
    const because = data.because && html`, because:`;
    return html`<p>You chose <b>'${yours}'</b>${isRight(data, answered)
      ? html`, which is right${because}`
      : html`. The answer is <b>${expected.map((one) => `'${one}'`).join(" or ")}</b>${because}`}${
      data.because ? "" : "."}</p>`;
  }

  function explanation() {
    const { because, pictures } = data, parts = [pictures, because];
    return html`<div>${unsafeHTML((form === "choice" ? parts.reverse() : parts).join(""))}</div>`;
  }

  function show() {
    render(html`<p><b>Prediction.</b> ${unsafeHTML(data.question)}</p><div class="av-asking ${
      choices.length ? "av-choices" : ""}">${answer === null ? inputForm() : ""}</div><div
      class="av-shown" tabindex="-1" role="status">${
  answer === null ? "" : html`${comparison(answer)}${explanation()}`}</div>`, panel);
    const drawing = panel.querySelector<HTMLElement>(".av-drawing:not(.av-bars)");
    if (drawing) bars(drawing, data as BarsData, (answer ?? heights) as number[],
      answer === null ? (index, value) => (heights[index] = value) : null);
  }
}
