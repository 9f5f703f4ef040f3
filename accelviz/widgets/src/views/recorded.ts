// The recorded times on this graph: the fastest of each strategy, and a heat map of the first's
// times over the values of two of its parameters. What was not recorded has no cell.

import { button, drawing, html, render } from "../controls";
import { micros, number, parameterText } from "../numbers";
import type { View } from "../panel";
import { anchorIn, mutedText, picture, rect, textMark, textWidth } from "../marks";
import { LOADS, themeOf, widthOf } from "../plot";
import { allRecorded, type SettingTime } from "../times";
import type { Scene, Value } from "../types";

const CELL = 26; // pixels: height of a cell

/** Fastest recorded setting of each strategy, the fastest first. */
export function fastestOfEach({ strategies, settings: { nCols }, timesTable }: Scene) {
  const fastest = strategies.flatMap((strategy) => {
    const all = allRecorded(timesTable, strategy, nCols);
    return all.length ? [all.reduce((a, b) => (b.median < a.median ? b : a))] : [];
  });
  return fastest.sort((a, b) => a.median - b.median);
}

export const recorded: View = (host, act) => (scene) => {
  const { graph, operation, settings: { nCols } } = scene, fastest = fastestOfEach(scene);
  if (!fastest.length)
    return render(html`<p class="av-note">Nothing was recorded of ${operation.name} on ${
      graph.name} with ${nCols} columns.</p>`, host);
  const [best] = fastest, width = widthOf(host);
  const go = ({ strategy, parameters }: SettingTime) => act.set({ first: strategy, parameters });
  render(html`<p>Fastest recorded here, with ${nCols} columns: <b>${
    best.label}</b>, ${micros(best.median)} ${button("fastest", "Go there",
    "Make this setting the first", () => go(best))}</p><div class="av-scroll"><table
      class="av-fastest"><thead><tr><th scope="col">strategy</th><th scope="col">its fastest
      setting</th><th scope="col">time</th><th scope="col">run</th><td></td></tr></thead><tbody>${
  fastest.map((time) => html`<tr data-strategy=${time.strategy}><th scope="row">${
    time.strategy}</th><td>${time.label.slice(time.strategy.length).trim() || "defaults"}</td>
      <td>${micros(time.median)}</td><td>${scene.timesTable!.runs[time.run].where}</td><td>${
        button(`go ${time.strategy}`, "Go", `Make ${time.label} the first`, () => go(time))
      }</td></tr>`)}</tbody></table></div>${heatMap(scene, width)}`, host);
  host.onclick = (event) => {
    const token = (event.target as SVGElement).dataset?.cell;
    if (token) act.set({ parameters: JSON.parse(token) as Record<string, Value> });
  };

  /** Times of the first strategy over its two parameters with most recorded values. */
  function heatMap({ first, a, timesTable, settings }: Scene, across: number) {
    const all = allRecorded(timesTable, first, settings.nCols);
    // Other parameters are those of the setting shown.
    const numeric = first.parameters.filter(({ values }) =>
      values.filter((value) => typeof value === "number").length > 1);
    const valuesOf = (name: string) =>
      [...new Set(all.map(({ parameters }) => parameters[name] as number))].sort((x, y) => x - y);
    const [x, y] = numeric.map(({ name }) => name)
      .sort((one, other) => valuesOf(other).length - valuesOf(one).length);
    if (!x || !y || valuesOf(x).length < 2 || valuesOf(y).length < 2) return "";
    const fixed = Object.entries(a.parameters).filter(([name]) => name !== x && name !== y);
    const cells = all.filter(({ parameters }) => fixed.every(([name, value]) =>
      value === null || parameters[name] === value));
    const [xs, ys] = [valuesOf(x), valuesOf(y)];
    const run = cells[0]?.run, ofRun = cells.filter((cell) => cell.run === run);
    if (ofRun.length < 4) return "";
    const times = ofRun.map(({ median }) => median), colours = LOADS[themeOf(host)];
    const [least, most] = [Math.min(...times), Math.max(...times)];
    const left = 12 + Math.max(textWidth(y), ...ys.map((value) => textWidth(number(value))));
    const wide = (across - left - 4) / xs.length, top = 18;
    const parts = [textMark(0, 12, y, "start", { class: "av-q" })];
    xs.forEach((value, i) => parts.push(mutedText(left + (i + 0.5) * wide,
      top + ys.length * CELL + 14, number(value), "middle")));
    ys.forEach((value, i) =>
      parts.push(mutedText(left - 6, top + (i + 0.5) * CELL + 4, number(value), "end")));
    parts.push(mutedText(left + (wide * xs.length) / 2, top + ys.length * CELL + 30, x,
      anchorIn(left + (wide * xs.length) / 2, 60, across - 60)));
    for (const { parameters, median } of ofRun) {
      const [i, j] = [xs.indexOf(parameters[x] as number), ys.indexOf(parameters[y] as number)];
      const level = most > least ? (median - least) / (most - least) : 0;
      const isCurrent = parameters[x] === a.parameters[x] && parameters[y] === a.parameters[y];
      const text = micros(median).replace(" µs", "");
      const [cellX, cellY] = [left + i * wide, top + j * CELL];
      const look = isCurrent ? "av-now-cell" : median === least ? "av-best-cell" : null;
      parts.push(rect(cellX, cellY, wide - 1, CELL - 1, {
        "fill": colours[Math.min(Math.floor(level * colours.length), colours.length - 1)],
        "class": look, "data-cell": JSON.stringify({ [x]: parameters[x], [y]: parameters[y] }),
        "data-say": `${x} ${parameters[x]}, ${y} ${parameters[y]}: ${micros(median)}` +
          `${median === least ? ", the fastest of these" : ""}${isCurrent ? ", as it is set" : ""}`,
      }));
      if (textWidth(text, 11) < wide - 4)
        parts.push(textMark(cellX + wide / 2, cellY + CELL / 2 + 4, text, "middle",
          { "class": level < 0.4 ? "av-few" : "av-many", "font-size": 11 }));
    }
    const others = fixed.map(([name, value]) => parameterText(name, value)).join(", ");
    const label = `Times of ${first.name} over ${x} and ${y}: ${micros(least)} to ${micros(most)}`;
    return html`${drawing(picture(across, top + ys.length * CELL + 36,
      parts.join(""), label), "av-heat")}<p
      class="av-note">${first.name}, ${timesTable!.runs[run].where}, in µs${
        others ? `; ${others}` : ""}. Click a cell to set it. Where there is no cell, nothing was
      measured.</p>`;
  }
};
