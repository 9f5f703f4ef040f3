// What the explorer's buttons "Copy as code" and "PNG" do: write the Python call for the current
// state, and save the views as a picture. Also the glossary's texts.

import { html, render } from "./controls";
import { count, idleShareText, micros, parameterText } from "./numbers";
import { themeOf } from "./plot";
import * as times from "./times";
import type { Scene, Side, Strategy, Value } from "./types";

const pythonLiteral = (value: Value) =>
  typeof value === "string" ? `"${value}"` : times.pythonValue(value);

/** The Python call that opens the explorer in its current state. `a` and `b` are the first and
 *  the second side (`b` is null if there is nothing to compare with), `first` is the strategy of
 *  `a`. Parameters at their defaults are left out. */
export function pythonCall({ settings, operation, a, b, first, strategies }: Scene) {
  const changedParameters = (side: Side, strategy: Strategy) => strategy.parameters
    .filter(({ name, default: defaultValue }) => side.parameters[name] !== defaultValue)
    .map(({ name }) => [name, pythonLiteral(side.parameters[name])]);
  const spmm = operation.name === "spmm"; // other operations are given by a strategy object
  const parts = [pythonLiteral(settings.graph), spmm ? `first=${pythonLiteral(settings.first)}`
    : `find_strategy(${pythonLiteral(settings.first)}, ${pythonLiteral(operation.name)})`,
  ...changedParameters(a, first).map(([name, value]) => `${name}=${value}`),
  `second=${pythonLiteral(settings.second)}`];
  const pinned = b ? changedParameters(b, strategies.find(({ name }) => name === b.strategy)!) : [];
  if (pinned.length)
    parts.push(`pinned={${pinned.map(([name, value]) => `"${name}": ${value}`).join(", ")}}`);
  parts.push(`n_cols=${settings.nCols}`, `row=${settings.row}`);
  // `explore` selects the first block of the row; another block of a split row must be given.
  const [low] = a.partition?.blocks ? a.partition.blocksOf(a.positionOf(settings.row)) : [];
  if (settings.block !== (low ?? 0)) parts.push(`block=${settings.block}`);
  // Values that a rule chose for parameters without a value; they become a comment.
  const ruleValues = [a, b].flatMap((side, i) => {
    const chosen = Object.entries(side?.parameters ?? {}).flatMap(([name, value]) =>
      value === null && side!.resolved[name] !== undefined
        ? [`${name}=${pythonLiteral(side!.resolved[name])}`] : []);
    return chosen.length ? (i ? "of the second " : "") + chosen.join(", ") : [];
  });
  if (a.sorted) parts.push("degree_sorted=True");
  const call = `accelviz.explore(${parts.join(", ")})` +
    (ruleValues.length ? `  # by rule: ${ruleValues.join("; ")}` : "");
  return spmm ? call : `from accelviz.strategies import find_strategy\n${call}`;
}

// What a canvas takes from rules of its own; its image has no such rules.
const LOOKS =
  ["width", "height", "position", "display", "backgroundColor", "imageRendering"] as const;

/** Save the current group of views as PNG, below a heading whose first line is bold. The browser
 *  renders a copy of the HTML, with its styles, inside an SVG image. */
export async function savePng(panel: HTMLElement, name: string, heading: string[]) {
  const group = panel.querySelector<HTMLElement>(".av-group:not([hidden])")!;
  const style = [...document.querySelectorAll("style")]
    .find(({ textContent }) => textContent.includes(".av-panel"))!;
  const copy = group.cloneNode(true) as HTMLElement, canvases = group.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((canvas, i) => {
    const look = getComputedStyle(canvases[i]);
    const image = Object.assign(new Image(), { src: canvases[i].toDataURL() });
    image.style.cssText = canvas.style.cssText;
    for (const name of LOOKS) image.style[name] = look[name];
    canvas.replaceWith(image);
  });
  // A control becomes its name and value.
  const fields = group.querySelectorAll<HTMLInputElement>("input[type=number]");
  copy.querySelectorAll("input[type=number]").forEach((field, i) => {
    const { hidden, value, parentElement: control } = fields[i];
    const text = hidden ? control!.querySelector("output")!.value : value;
    for (const part of field.parentElement!.querySelectorAll("input[type=range], output"))
      part.remove();
    field.replaceWith(Object.assign(document.createElement("b"), { textContent: ` ${text}` }));
  });
  // The list of block buttons ends a sentence.
  for (const buttons of copy.querySelectorAll(".av-presses")) buttons.replaceWith(".");
  for (const control of copy.querySelectorAll("button, .av-bar, .av-curtain, .av-question"))
    control.remove();
  const picture = Object.assign(document.createElement("div"), { className: "av-panel" });
  Object.assign(picture.style,
    { position: "absolute", width: `${panel.offsetWidth}px`, colorScheme: themeOf(panel) });
  render(html`${heading.map((line, i) => html`<p>${i ? line : html`<b>${line}</b>`}</p>`)}${copy}`,
    picture);
  panel.after(picture); // only to measure its size; it is static inside the SVG
  const { offsetWidth: width, offsetHeight: height } = picture;
  picture.remove();
  picture.style.position = "static";
  const page = Object.assign(document.createElement("div"), { className: "av-page" });
  page.append(style.cloneNode(true), picture);
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    '<foreignObject width="100%" height="100%">' +
    `${new XMLSerializer().serializeToString(page)}</foreignObject></svg>`;
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"),
    { width: 2 * width, height: 2 * height });
  const pen = canvas.getContext("2d")!;
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  Object.assign(document.createElement("a"),
    { href: canvas.toDataURL(), download: `${name}.png` }).click();
}

/** The heading of a picture: the graph, and the strategies with all parameters, recorded times and
 *  idle shares; the second one unless the story is shown, which has one strategy. */
export function headingOf({ graph, settings, operation, a, b }: Scene, panel: HTMLElement) {
  const describe = (side: Side, name: string) => {
    const values = Object.entries(side.parameters).map(([parameter, value]) =>
      parameterText(parameter, value === null ? null : pythonLiteral(value),
        side.resolved[parameter]));
    const { recorded, runName } = side.times, share = idleShareText(side);
    const facts = [recorded ? `${micros(recorded.median)} (${runName(recorded.run)})` : "",
      share && `${share} of warp time idle`].filter(Boolean).join(", ");
    return `${name}: ${side.strategy}${values.length ? ` (${values.join(", ")})` : ""}` +
      (facts && `: ${facts}`);
  };
  const hasSecond = b && panel.dataset.shown !== "story";
  return [`${graph.name}, ${count(graph.rows, "row")}, ${count(graph.nnz, "nonzero")}, ` +
    `${count(settings.nCols, "column")} of ${operation.reads}`,
  describe(a, "first"), ...(hasSecond ? [describe(b, "second")] : [])];
}

/** Meanings of the glossary terms that occur in a heading or label. */
export function glossaryText(text: string, glossary: Record<string, string>) {
  return Object.entries(glossary).filter(([term]) =>
    new RegExp(`\\b${term.toLowerCase()}s?\\b`).test(text.toLowerCase()))
    .map(([term, meaning]) => `${term}: ${meaning}`).join("\n");
}
