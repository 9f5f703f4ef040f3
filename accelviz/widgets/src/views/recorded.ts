// The recorded times on this graph: a ranking of the strategies for each run, and a heat map of the
// first's times over the values of two of its parameters. Times of different runs are not ranked.

import { button, drawing, html, render } from "../controls";
import { count, micros, number, parameterText } from "../numbers";
import type { View } from "../panel";
import { mutedText, picture, rect, textMark, textWidth } from "../marks";
import { LOADS, themeOf, widthOf } from "../plot";
import {
  allRecorded, quartilesOverlap, type Recorded, runsOf, type SettingTime, spreadText,
} from "../times";
import type { Scene, Value } from "../types";
import { breakable } from "./statistics";

const CELL = 26; // pixels: height of a cell
const SETTINGS_NAMED = 3; // settings as fast as the fastest that are named at most

/** The fastest setting of each strategy in a run, of how many `settings`; the fastest first. */
export function fastestOfRun({ strategies, settings: { nCols }, timesTable }: Scene, run: number) {
  return strategies.flatMap((strategy) => {
    const all = allRecorded(timesTable, strategy, nCols, run);
    return all.length ? [{ ...all.reduce((a, b) => (b.median < a.median ? b : a)),
      settings: all.length }] : [];
  }).sort((a, b) => a.median - b.median);
}

export const recorded: View = (host, act) => (scene) => {
  const { graph, operation, settings: { nCols }, strategies, timesTable } = scene;
  const runs = runsOf(timesTable, strategies.map(({ name }) => name), nCols);
  const rankings = runs.map((run) => ({ run, times: fastestOfRun(scene, run) }))
    .filter(({ times }) => times.length);
  if (!rankings.length)
    return render(html`<p class="av-note">Nothing was recorded of ${operation.name} on ${
      graph.name} with ${count(nCols, "column")}.</p>`, host);
  const [main, ...others] = rankings, [best] = main.times;
  const nameOf = (run: number) => timesTable!.runs[run].where;
  const go = ({ strategy, parameters }: SettingTime) => act.set({ first: strategy, parameters });
  render(html`<p>Fastest of ${count(main.times.length, "strategy", "strategies")} in the run of ${
    nameOf(main.run)}, with ${count(nCols, "column")}: <b>${best.label}</b>, ${
    micros(best.median)}. ${certainty()} ${button("fastest", "Go there",
    "Make this setting the first", () => go(best))}</p>${ranking(main)}${
    others.length ? html`<p>Other runs, each ranked for itself: a GPU is not equally fast on two
      days, so times of different runs are not compared.</p>${others.map(ranking)}` : ""}${
    heatMap(scene, widthOf(host))}`, host);
  host.onclick = (event) => {
    const token = (event.target as SVGElement).dataset?.cell;
    if (token) act.set({ parameters: JSON.parse(token) as Record<string, Value> });
  };

  /** Whether the first place is certain: by the spread in this run, and by other runs. */
  function certainty() {
    const [, next] = main.times;
    if (!next) return "";
    const ratio = (next.median / best.median).toFixed(2);
    const apart = quartilesOverlap(best, next)
      ? `It is not apart from ${next.label}, ${micros(next.median)}: the ranges of the middle ` +
      "half of the repeats overlap."
      : `The next, ${next.label}, took ${ratio} times as long; the ranges of the middle half of ` +
        "the repeats do not overlap.";
    const repeated = others.flatMap(({ run, times }) => {
      const [a, b] = [best, next].map(({ strategy }) =>
        times.find((time) => time.strategy === strategy));
      return a && b ? [`${nameOf(run)}: ${micros(a.median)} and ${micros(b.median)}`] : [];
    });
    return apart + (repeated.length ? ` Other runs that have both: ${repeated.join("; ")}.` : "");
  }

  /** Times of the same setting in other runs. */
  function elsewhere({ strategy, label, run }: SettingTime) {
    const declared = strategies.find(({ name }) => name === strategy)!;
    return runs.flatMap((other) => other === run ? []
      : allRecorded(timesTable, declared, nCols, other).filter((time) => time.label === label))
      .map((time, i) => html`${i ? ", " : ""}<span title=${nameOf(time.run)}>${
        micros(time.median)}</span>`);
  }

  function ranking({ run, times }: (typeof rankings)[number]) {
    return html`<div class="av-scroll"><table class="av-fastest"><caption>${
      nameOf(run)}</caption><thead><tr><th scope="col">strategy</th><th
      scope="col">its fastest setting</th><th scope="col">time<span
      class="av-narrow">half of the repeats</span></th><th
      scope="col" class="av-wide">half of the repeats</th><th scope="col">in other runs</th><td></td
      ></tr></thead><tbody>${times.map((time) => html`<tr data-strategy=${time.strategy}><th
        scope="row">${breakable(time.strategy)}</th><td>${
          breakable(time.label.slice(time.strategy.length).trim() || "defaults")}${
          time.settings > 1 ? ` (of ${time.settings} settings)` : ""}</td><td>${
          micros(time.median)}<span class="av-narrow">${spreadText(time)}</span></td><td
          class="av-wide">${spreadText(time)}</td><td>${
            elsewhere(time)}</td><td>${button(`go ${time.strategy}`, "Go",
            `Make ${time.label} the first`, () => go(time))}</td></tr>`)}</tbody></table></div>`;
  }

  /** Times of the first strategy over its two parameters with most recorded values. */
  function heatMap({ first, a, settings }: Scene, across: number) {
    const timesOf = (run: number) => allRecorded(timesTable, first, settings.nCols, run);
    const all = runs.map(timesOf).reduce((a, b) => b.length > a.length ? b : a);
    const numeric = first.parameters.filter(({ values }) =>
      values.filter((value) => typeof value === "number").length > 1);
    const valuesOf = (name: string) =>
      [...new Set(all.map(({ parameters }) => parameters[name] as number))].sort((x, y) => x - y);
    const names = numeric.map(({ name }) => name)
      .sort((one, other) => valuesOf(other).length - valuesOf(one).length).slice(0, 2);
    if (names.length < 2 || names.some((name) => valuesOf(name).length < 2)) return "";
    // Other parameters are those of the setting shown.
    const fixed = Object.entries(a.parameters).filter(([name]) => !names.includes(name));
    const cells = all.filter(({ parameters }) => fixed.every(([name, value]) =>
      value === null || parameters[name] === value));
    if (cells.length < 4) return "";
    const times = cells.map(({ median }) => median), colours = LOADS[themeOf(host)];
    const [least, most] = [Math.min(...times), Math.max(...times)];
    const textOf = ({ median }: Recorded) => micros(median).replace(" µs", "");
    const leastWidth = 10 + Math.max(...cells.map((cell) => textWidth(textOf(cell), 11)));
    const leftOf = (name: string) =>
      12 + Math.max(...valuesOf(name).map((value) => textWidth(number(value))));
    const wideOf = ([x, y]: string[]) => (across - leftOf(y) - 4) / valuesOf(x).length;
    // The parameter with fewer values goes across where more do not fit.
    const [x, y] = wideOf(names) < leastWidth ? [names[1], names[0]] : names;
    const [xs, ys] = [valuesOf(x), valuesOf(y)], left = leftOf(y), top = 18;
    const wide = Math.max(wideOf([x, y]), leastWidth), width = left + wide * xs.length + 4;
    const bottom = top + ys.length * CELL, parts = [mutedText(0, 12, y)];
    xs.forEach((value, i) =>
      parts.push(mutedText(left + (i + 0.5) * wide, bottom + 14, number(value), "middle")));
    ys.forEach((value, i) =>
      parts.push(mutedText(left - 6, top + (i + 0.5) * CELL + 4, number(value), "end")));
    parts.push(mutedText(left + (wide * xs.length) / 2, bottom + 30, x, "middle"));
    const fastest = cells.filter(({ median }) => median === least), frames: string[] = [];
    for (const cell of cells) {
      const { parameters, median } = cell;
      const [i, j] = [xs.indexOf(parameters[x] as number), ys.indexOf(parameters[y] as number)];
      const level = most > least ? (median - least) / (most - least) : 0;
      const isCurrent = parameters[x] === a.parameters[x] && parameters[y] === a.parameters[y];
      const isBest = median === least, [cellX, cellY] = [left + i * wide, top + j * CELL];
      const facts = [isBest && (fastest.length > 1 ? `one of the ${fastest.length} fastest of these`
        : "the fastest of these"), isCurrent && "as it is set"].filter(Boolean);
      parts.push(rect(cellX, cellY, wide - 1, CELL - 1, {
        "fill": colours[Math.min(Math.floor(level * colours.length), colours.length - 1)],
        "class": isBest ? "av-best-cell" : null,
        "data-cell": JSON.stringify({ [x]: parameters[x], [y]: parameters[y] }),
        "data-say": [`${x} ${parameters[x]}, ${y} ${parameters[y]}: ${micros(median)}, half of ` +
          `the repeats ${spreadText(cell)}`, ...facts].join(", "),
      }), textMark(cellX + wide / 2, cellY + CELL / 2 + 4, textOf(cell), "middle",
        { "class": level < 0.4 ? "av-few" : "av-many", "font-size": 11 }));
      const frame = (inset: number, look: string) => frames.push(rect(cellX + inset, cellY + inset,
        wide - 1 - 2 * inset, CELL - 1 - 2 * inset, { class: look }));
      if (isBest) frame(1, "av-best-frame");
      if (isCurrent) frame(isBest ? 3 : 1, "av-now-frame");
    }
    const others = fixed.map(([name, value]) => parameterText(name, value)).join(", ");
    const label = `Times of ${first.name} over ${x} and ${y}: ${micros(least)} to ${micros(most)}`;
    const named = fastest.slice(0, SETTINGS_NAMED).map(({ parameters }) =>
      `${number(parameters[x] as number)} and ${number(parameters[y] as number)}`);
    const shared = fastest.length > 1 ? `, of ${fastest.length} settings` : "";
    const missing = cells.length < xs.length * ys.length
      ? " Where there is no cell, nothing was measured." : "";
    return html`<div class="av-scroll">${drawing(picture(width, bottom + 36,
      [...parts, ...frames].join(""), label), "av-heat")}</div><p class="av-note"><span
      class="av-key av-best-key"></span> the fastest of these, ${micros(least)}${shared} (${x} and
      ${y}: ${named.join("; ")}${fastest.length > SETTINGS_NAMED ? " …" : ""}) &nbsp; <span
      class="av-key av-now-key"></span> as it is set. ${first.name}, ${
        nameOf(cells[0].run)}, in µs${others ? `; ${others}` : ""}. Click a cell to set it.${
        missing}</p>`;
  }
};
