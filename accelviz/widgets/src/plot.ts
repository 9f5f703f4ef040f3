// What the charts share: scales, axes, the frame around them.

import { mark, path, words } from "./marks";
import { short } from "./numbers";

// From few nonzeros to many, each step further from the ground and from idle: viridis, to dark on a
// light ground, and to light on a dark one.
export const LOADS = {
  light: ["#dfe318", "#bade28", "#86d549", "#56c667", "#35b779", "#1f988b", "#277f8e", "#2e6e8e",
    "#3b528b", "#453781", "#482173", "#440154"],
  dark: ["#355f8d", "#2d708e", "#277f8e", "#218e8d", "#1e9d89", "#26ad81", "#3bbb75", "#5ac864",
    "#81d34d", "#aadc32", "#d5e21a", "#fde725"],
};

// The colours of loads in the theme that an element has.
export function loadColours(host) {
  const { colorScheme } = getComputedStyle(host);
  if (colorScheme in LOADS) return LOADS[colorScheme];
  return matchMedia("(prefers-color-scheme: dark)").matches ? LOADS.dark : LOADS.light;
}

// A scale from numbers to places; with `log`, equal ratios are equally long.
export function axis(low, high, start, stop, log = false) {
  const shape = log ? Math.log : (value) => value;
  const from = shape(low), reach = shape(high) - from;
  const at = (value) => {
    const share = reach > 0 ? (shape(Math.max(value, low)) - from) / reach : 0;
    return start + Math.min(Math.max(share, 0), 1) * (stop - start);
  };
  return Object.assign(at, { low, high, start, stop, log });
}

// Round numbers between the ends of a scale, three to seven.
export function ticksOf({ low, high, log }) {
  if (log) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high) + 1e-9);
    if (last > first) {
      const every = Math.max(1, Math.round((last - first) / 4)), found = [];
      for (let power = first; power <= last; power += every) found.push(10 ** power);
      return found;
    }
    return [1, 2, 4, 8, 16, 32, 64, 128].filter((each) => low <= each && each <= high);
  }
  const reach = high - low || 1, decade = 10 ** Math.floor(Math.log10(reach));
  const step = decade * [0.2, 0.5, 1, 2].find((factor) => reach / (decade * factor) <= 6);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step)
    found.push(Number(value.toPrecision(12)));
  return found;
}

// Two axes with their names; `xTicks` is false where the marks below are the chart's own.
export function frame(x, y, xName, yName, xTicks = true) {
  const quiet = { class: "av-q" };
  let drawn = path(`M${x.start} ${y.stop}V${y.start}H${x.stop}`, { class: "av-frame" });
  if (xTicks) {
    for (const value of ticksOf(x))
      drawn += words(x(value), y.start + 16, short(value), "middle", quiet);
  }
  for (const value of ticksOf(y)) {
    drawn += path(`M${x.start - 3} ${y(value)}H${x.start}`, { class: "av-frame" });
    drawn += words(x.start - 6, y(value) + 4, short(value), "end", quiet);
  }
  drawn += words((x.start + x.stop) / 2, y.start + 33, xName, "middle", quiet);
  return drawn + mark("text", { x: 0, y: 0, class: "av-q", "text-anchor": "middle",
    transform: `translate(12 ${(y.start + y.stop) / 2}) rotate(-90)` }, yName);
}

// The width that a view may draw in.
export const widthOf = (host) => Math.max(Math.floor(host.clientWidth), 280);
