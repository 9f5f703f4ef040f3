// Parts of charts: scales, ticks, the frame with two axes, keys, and the colours of loads.

import { drawing, html, type TemplateResult } from "./controls";
import { mark, path, picture, mutedText } from "./marks";
import { clamp, short } from "./numbers";

// Colours from few to many nonzeros: from blue over violet to orange in both themes, with rising
// contrast to the background of each.
export const LOADS = {
  light: ["#c6d6f6", "#b6bff0", "#b0a5e6", "#b28cd9", "#b573c8", "#b45cb3", "#b04a9a", "#a83f80",
    "#9f3865", "#94344a", "#873230", "#743206"],
  dark: ["#26427f", "#384a98", "#5050aa", "#6d55b6", "#8d5aba", "#ac60b4", "#c768a6", "#db7293",
    "#e97f7d", "#f38e66", "#faa14f", "#ffb93d"],
};

/** The theme of an element in a panel, which `followTheme` sets. */
export const themeOf = (host: Element) =>
  getComputedStyle(host).colorScheme === "dark" ? "dark" : "light";

export type Axis = ReturnType<typeof axis>;

/** A scale from `low` to `high`, in pixels from `start` to `stop`; logarithmic with `log`. */
export function axis(low: number, high: number, start: number, stop: number, log = false) {
  const shape = log ? Math.log : (value: number) => value;
  const from = shape(low), reach = shape(high) - from;
  const at = (value: number) => {
    const share = reach > 0 ? (shape(Math.max(value, low)) - from) / reach : 0;
    return start + clamp(share, 0, 1) * (stop - start);
  };
  return Object.assign(at, { low, high, start, stop, log });
}

/** The smallest step, 1, 2 or 5 times a power of ten, that divides a length in `most` at most. */
export function roundStep(length: number, most: number) {
  const decade = 10 ** Math.floor(Math.log10(length / most));
  return decade * [1, 2, 5, 10].find((factor) => length / (decade * factor) <= most + 1e-9)!;
}

/** Three to seven round numbers between the ends of a scale. */
export function ticksOf({ low, high, log }: Pick<Axis, "low" | "high" | "log">) {
  const ticks: number[] = [];
  if (log) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.round((last - first) / 4));
    for (let power = first; power <= last; power += every) ticks.push(10 ** power);
    return last > first ? ticks
      : [1, 2, 4, 8, 16, 32, 64, 128].filter((value) => low <= value && value <= high);
  }
  const step = roundStep(high - low || 1, 6);
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step)
    ticks.push(Number(value.toPrecision(12)));
  return ticks;
}

/** Two axes with names; `xTicks` is false if the chart draws its own marks below. */
export function frame(x: Axis, y: Axis, xName: string, yName: string, xTicks = true) {
  let drawn = path(`M${x.start} ${y.stop}V${y.start}H${x.stop}`, { class: "av-frame" });
  for (const value of xTicks ? ticksOf(x) : [])
    drawn += mutedText(x(value), y.start + 16, short(value), "middle");
  for (const value of ticksOf(y))
    drawn += path(`M${x.start - 3} ${y(value)}H${x.start}`, { class: "av-frame" }) +
      mutedText(x.start - 6, y(value) + 4, short(value), "end");
  const transform = `translate(12 ${(y.start + y.stop) / 2}) rotate(-90)`;
  return drawn + mutedText((x.start + x.stop) / 2, y.start + 33, xName, "middle") +
    mark("g", { transform }, mutedText(0, 0, yName, "middle"));
}

export const widthOf = (host: Element) => Math.max(Math.floor(host.clientWidth), 280);

/** A chart and its key: CSS class of the swatch, and meaning. */
export const chart = (
  width: number, height: number, drawn: string, label: string, keys: [string, string][] = [],
): TemplateResult => html`${drawing(
  picture(width, height, drawn, label))}${keys.length ? keysOf(keys) : ""}`;

const keysOf = (entries: [string, string][]) => html`<p class="av-note">${
  entries.map(([look, text]) =>
    html`<span class="av-entry"><span class="av-key ${look}"></span> ${text}</span> &nbsp; `)}</p>`;
