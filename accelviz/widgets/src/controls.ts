// Templates of the controls: menus, sliders with a number field, buttons. All have accessible names
// and work by keyboard; the attribute `data-lm-suppress-shortcuts` disables JupyterLab's shortcuts.

import { html, nothing, render, type TemplateResult } from "lit-html";
import { live } from "lit-html/directives/live.js";
import { clamp, valueOrRule } from "./numbers";
import type { Value } from "./types";

export { html, nothing, render, type TemplateResult };

const RULE = "By rule: the strategy chooses it from the graph and the number of columns.";

const valueOf = (event: Event) => (event.target as HTMLInputElement).value;

/** A menu; where there is nothing to choose, the text of its only option. */
export function menu(
  name: string, label: unknown, title: string, options: [value: string, text: string][],
  value: string, act: (value: string) => void,
) {
  if (options.length < 2)
    return html`<div class="av-control av-menu">${
      typeof label === "string" ? html`<span title=${title}>${label}</span>` : label}<output
      data-control=${name} title=${title}>${options[0]?.[1]}</output></div>`;
  return html`<label class="av-control av-menu">${
    typeof label === "string" ? html`<span title=${title}>${label}</span>` : label}<select
      data-control=${name} data-lm-suppress-shortcuts="true" aria-description=${title || nothing}
      @change=${(event: Event) => act(valueOf(event))}>${options.map(([option, text]) =>
        html`<option value=${option} .selected=${live(option === value)}>${text}</option>`)
      }</select></label>`;
}

/** Tells that a typed number was replaced; `between` is one between two values, which a page made
 *  for it could have. */
type Say = (text: string, between?: number) => void;

interface Ranged {
  name: string; label: string; title: string; look: string; last: number; at: number;
  /** Content of the number field, from `low` to `high`, and its values in words; null for none. */
  number: number | null; low: number; high: number; list: string; text?: string;
  choose(index: number): void;
  nearest(wanted: number): number;
  set(number: number): void;
  say: Say;
  key?(event: KeyboardEvent): void;
}

/** A slider and, for numbers, a field beside it, which takes the value nearest to the number
 *  typed and tells the reader if that is another one. */
function ranged(control: Ranged, output: TemplateResult | typeof nothing = nothing) {
  const { name, label, title, look, last, at, number, low, high, list, text } = control;
  const take = ({ target }: Event) => {
    const field = target as HTMLInputElement, typed = field.value === "" ? number! : +field.value;
    const nearest = control.nearest(typed);
    field.value = String(nearest);
    control.set(nearest);
    if (nearest !== typed)
      control.say(`${label}: ${typed} is not one of the values here, so the nearest, ${nearest}, ` +
        `is set. The values are ${list}.`,
      Number.isInteger(typed) && low < typed && typed < high ? typed : undefined);
  };
  return html`<div class="av-control ${look}"><span title=${title}>${label}</span><input
    type="range" min="0" step="1" max=${last} data-control=${name} aria-label=${label}
    data-lm-suppress-shortcuts="true" aria-description=${title || nothing}
    aria-valuetext=${text ?? nothing} ?disabled=${last <= 0 && look === "av-steps"}
    .value=${live(String(at))} @input=${(event: Event) =>
      control.choose(Number(valueOf(event)))}><input
    type="number" class="av-field" min=${low} max=${high} aria-label="${label}, as a number"
    data-lm-suppress-shortcuts="true" aria-description=${title || nothing}
    ?hidden=${number === null} ?disabled=${high <= 0 && look === "av-steps"}
    .value=${look === "av-steps" ? String(number) : live(String(number ?? ""))} @change=${take}
    @wheel=${(event: Event) => // the page scrolls, and the value stays
      (event.target as HTMLElement).blur()}
    @keydown=${(event: KeyboardEvent) => {
      if (event.key === "Enter") take(event);
      control.key?.(event);
    }}>${output}</div>`;
}

/** A slider over a list of values, with a field for those that are numbers. */
export function slider<Choice extends Value>(
  name: string, label: string, title: string, values: Choice[], value: Choice,
  act: (value: Choice) => void, say: Say, chosen: Value | undefined = null,
) {
  const numbers = values.filter((value) => typeof value === "number");
  const number = typeof value === "number" ? value : null, text = valueOrRule(value, chosen);
  const [low, high] = [numbers[0] ?? 0, numbers.at(-1) ?? 0];
  return ranged({
    name, label, title, look: "av-slider", last: values.length - 1, at: values.indexOf(value), text,
    number, low, high, say,
    list: high - low === numbers.length - 1 ? `${low} to ${high}` : numbers.join(", "),
    choose: (index) => act(values[index]),
    nearest: (wanted) => numbers.reduce((best: number, number) =>
      Math.abs(number - wanted) < Math.abs(best - wanted) ? number : best, low),
    set: (number) => act(values.find((value) => value === number)!),
    key(event) {
      const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault(); // arrows choose the next value of the list, not the next number
      // Move the slider now: another key may be pressed before the page is drawn again.
      const range = (event.target as HTMLElement).previousElementSibling as HTMLInputElement;
      range.value = String(Number(range.value) + step);
      act(values[Number(range.value)]);
    },
  }, html`<output ?hidden=${number !== null} title=${value === null ? RULE : ""}>${text}</output>`);
}

/** A slider over the integers 0 to `last` with a number field. */
export const steps = (
  name: string, label: string, title: string, last: number, value: number,
  act: (value: number) => void, say: (text: string) => void,
) => ranged({
  name, label, title, look: "av-steps", last, at: value, number: value, low: 0, high: last,
  list: `0 to ${last}`, choose: act, set: act, say: (text) => say(text),
  nearest: (wanted) => clamp(Math.round(wanted), 0, last),
});

/** A picture as SVG text. Text that is set as a whole is parsed once, not copied as a template. */
export const drawing = (svg: string, look = "") =>
  html`<div class=${`av-draw ${look}`} .innerHTML=${svg}></div>`;

export const button = (
  name: string, label: unknown, title: string, act: () => void,
  { disabled = false, ariaLabel = nothing as string | typeof nothing } = {},
) => html`<button type="button" data-control=${name} title=${title} aria-label=${ariaLabel}
  data-lm-suppress-shortcuts="true" ?disabled=${disabled} @click=${act}>${label}</button>`;
