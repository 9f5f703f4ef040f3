// The head and the controls of the panel: what is looked at, and what it is compared with.

import { element, menuControl, pressButton, sliderControl, stepsControl } from "./controls";
import { number } from "./marks";
import { difference, headsAside, micros, percent } from "./numbers";
import type { Act } from "./panel";
import { codeOf, copyText, headingOf, saveHtml, savePng, saveSvg, tour } from "./share";
import { PREDICTED } from "./times";
import type { Parameter, Scene, Side, Strategy, Times, Tree, Value } from "./types";
import { sentenceOf } from "./views/product";
import { markOf, SIDES } from "./views/statistics";

interface ParameterControl {
  box: HTMLElement;
  update(values: Value[], value: Value, chosen?: Value): void;
}

export function controlsOf(act: Act, panel: HTMLElement) {
  let last: Scene; // the scene that is shown
  const head = element("div", { className: "av-head" });
  const settingsGroup = { "role": "group", "aria-label": "settings" };
  const box = element("div", { className: "av-controls", attributes: settingsGroup });
  const message = element("div",
    { className: "av-message", hidden: true, attributes: { role: "alert" } });
  const headline = element("div",
    { className: "av-headline", attributes: { "aria-live": "polite" } });
  const undo = pressButton("undo", "Undo", "Undo the last change (Ctrl+Z)", act.undo);
  const redo = pressButton("redo", "Redo", "Redo (Ctrl+Shift+Z)", act.redo);
  const reset = pressButton("reset", "Reset", "Back to the settings of the call", act.reset);
  const code = pressButton("code", "Copy as code", "The call that opens the explorer like this",
    async () => {
      const text = codeOf(last), copied = await copyText(text);
      act.say(copied ? `Copied: ${text}` : `Copy this: ${text}`, copied);
    });
  const save = (keep: typeof saveSvg | typeof savePng) => () =>
    void keep(panel.querySelector<HTMLElement>(".av-group:not([hidden])")!, last.graph.name,
      headingOf(last, sentenceOf(last)));
  const svg = pressButton("svg", "SVG", "Save the pictures that are seen as SVG", save(saveSvg));
  const png = pressButton("png", "PNG", "Save the pictures that are seen as PNG", save(savePng));
  const html = pressButton("html", "HTML", "Save a page of its own, alive without a kernel",
    async () => {
      const { alive, traced, savedGraph } = last;
      const saved = await saveHtml(panel.parentElement!, last, panel.dataset.shown!);
      const plays = traced?.graph === savedGraph ? `, with block ${number(traced.block)} to play`
        : alive ? ". A block that is traced before, in Play, is kept in it"
          : '; explore(...).save("x.html") in Python adds a block to play';
      act.say(saved ? `Saved as ${saved}${plays}.`
        : 'Python saves what this page has not: press "Copy as code", and add .save("x.html") to ' +
          "the call.", Boolean(saved));
    });
  const guide = pressButton("tour", "Tour", "What is what, in a minute",
    () => tour(panel, act.show, last.alive || last.traced !== null));
  const told = element("span", { attributes: { role: "status" } });
  const progress = element("div", { className: "av-progress", hidden: true },
    [told, " ", pressButton("cancel", "Cancel", "Do not wait for it", act.cancel)]);
  head.append(headline,
    element("div", { className: "av-buttons" }, [undo, redo, reset, code, svg, png, html, guide]));
  const descriptions = element("div", { className: "av-descriptions" });
  // Below the views, where it moves nothing; it stays in sight.
  const notes = element("div", { className: "av-notes" }, [message, progress]);

  const graph = menuControl("graph", "graph", "The graph whose adjacency matrix is A",
    (value) => act.set({ graph: value }));
  const first = menuControl("first", "strategy",
    "What the first setting is a setting of: how the " +
    "work is cut up and dealt out. Strategies of other operations are in panels of their own: " +
    'accelviz.explore(graph, operation="gat")', (value) => act.set({ first: value }));
  const second = menuControl("second", "compare with",
    "What the first is compared with: a strategy " +
    "in its default setting, or what was pinned",
    (value) => act.set({ second: value || null, pinned: {} }));
  const pin = pressButton("pin", "Pin first",
    "Keep the first setting as the second, and change the first from here on", act.pin);
  const swap = pressButton("swap", "Swap",
    "The second becomes the first, and the first the second", act.swap);
  const columns = sliderControl<number>("n_cols", "columns",
    "Columns of a row of features: numbers " +
    "that each nonzero is multiplied with", (nCols) => act.set({ nCols }));
  const row = stepsControl("row", "follow row",
    "The row of the matrix, a node of the graph, that all pictures follow", act.follow);
  const block = stepsControl("block", "block",
    "The block of warps that is shown: one of those that have the row", (value) =>
      act.set({ block: value }));
  const controls = new Map<string, ParameterControl>();
  const parameters = element("div", { className: "av-parameters" });
  first.box.prepend(markOf(0));
  second.box.firstChild!.replaceWith(markOf(1)); // short: the strategy's setting needs the room
  // What each strategy has more or fewer of comes last, and moves none of the others.
  box.append(graph.box, first.box,
    element("div", { className: "av-control av-compare" }, [second.box, pin, swap]),
    columns.box, row.box, block.box, parameters);

  panel.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) act.redo();
    else act.undo();
  });

  function controlOf(parameter: Parameter) {
    const { name, values } = parameter;
    if (!controls.has(name)) {
      const then = (value: Value) => act.set({ given: { [name]: value } });
      controls.set(name, values.some((value) => typeof value === "number")
        ? sliderControl(name, name, meaningOf(parameter), then) : wordControl(parameter, then));
    }
    return controls.get(name)!;
  }

  function update(scene: Scene) {
    const { a, b, settings, operation, strategies } = last = scene;
    headline.replaceChildren(
      element("div", { className: "av-graph" }, [
        operation.name === "spmm" ? "" : `${operation.name} on `,
        element("b", { textContent: scene.graph.name }),
        `, ${number(scene.graph.rows)} rows, ${number(scene.graph.nnz)} nonzeros`]),
      element("div", { className: "av-sides" }, [sideOf(a, 0, scene.before), b ? sideOf(b, 1, null)
        : element("div", { className: "av-of-side" }, [markOf(1), " nothing to compare with"])]));
    message.textContent = scene.message;
    message.hidden = !scene.message;
    message.classList.toggle("av-gentle", !scene.warns);
    progress.hidden = !scene.progress;
    if (told.textContent !== scene.progress) told.textContent = scene.progress;
    undo.disabled = !scene.canUndo;
    redo.disabled = !scene.canRedo;
    swap.disabled = !b;
    graph.update(scene.graphs, settings.graph);
    const names = strategies.map(({ name }) => name);
    const said = strategies.map(({ name, summary }) => `${name}: ${summary}`);
    first.update(names, settings.first, said);
    second.update(["", ...names], settings.second ?? "", // as it is set, where it is chosen
      ["nothing", ...said.map((text, i) => (names[i] === b?.strategy ? b.label : text))]);
    columns.update(scene.columns, settings.nCols);
    row.update(scene.graph.rows - 1, settings.row);
    block.update((a.partition?.blocks ?? 0) - 1, settings.block);
    const wanted = scene.first.parameters.filter((one) => moves(scene.first, one, a.times));
    for (const one of wanted)
      controlOf(one).update(one.values, a.parameters[one.name], a.resolved[one.name]);
    const boxes = wanted.map((one) => controlOf(one).box);
    for (const child of [...parameters.children] as HTMLElement[])
      if (!boxes.includes(child)) child.remove();
    boxes.forEach((child, i) => {
      if (parameters.children[i] !== child) parameters.insertBefore(child, parameters.children[i]);
    });
    // Room below for the parameters of whichever strategy has most, so that nothing there moves;
    // meanwhile it says what they do.
    descriptions.replaceChildren(...[a, b?.strategy === a.strategy ? null : b]
      .flatMap((side, i) => side ? [element("div", {}, [
        element("b", { textContent: SIDES[i] }),
        ` ${said[names.indexOf(side.strategy)]}.`])] : []));
    const most = Math.max(wanted.length, ...strategies.map((strategy) =>
      strategy.parameters.filter((one) => moves(strategy, one)).length));
    for (const across of [2, 3, 4])
      panel.style.setProperty(`--av-spare-${across}`,
        `${heightOf(most, across) - heightOf(wanted.length, across)}px`);
  }

  return { head, box, descriptions, notes, update };
}

const WAITING = "A block lasts as long as its busiest warp; this share of the warps' time has no " +
  "nonzero to sum. Less waiting may take longer: it counts nonzeros alone, and blocks, metadata, " +
  "atomics and how lanes read cost time, too.";

/** A setting in the headline: how long it takes, and how much of its warp time is waiting. */
function sideOf(side: Side, i: number, before: Side | null) {
  const { label, description, summary, unlisted, times: { recorded, predicted, where } } = side;
  const share = summary.idle_share, isRecorded = recorded !== null;
  const [time, how] = isRecorded ? [micros(recorded), "recorded"]
    : predicted !== null ? [`≈ ${micros(predicted)}`, "predicted"] : ["", "no time recorded"];
  const title = time && "Median time of the kernel, " +
    `${isRecorded ? "measured" : "predicted from what was measured"} on ` +
    `${where.replace(", ", " on ")}, and not where this page is open.` +
    (isRecorded ? "" : ` This setting was not measured: it is ${PREDICTED}`);
  const then = before?.times.recorded ?? before?.times.predicted;
  const sure = isRecorded && typeof before?.times.recorded === "number"; // else it is no verdict
  const than = before ? `Than with ${before.label}, before the last change.` : "";
  const waiting = !Number.isNaN(share) ? `${percent(share)} of warp time waiting`
    : unlisted ? "its warps are not listed here" : "does not say what its warps do";
  return element("div", { className: "av-of-side" }, [
    markOf(i), " ", element("span", { textContent: label, title: description }), ": ",
    element(isRecorded ? "b" : "span", { textContent: time, title }), time && " ",
    element("span", { textContent: how, title }),
    ...changeOf(recorded ?? predicted, then, micros, than,
      (by) => !sure ? "" : by > 0 ? "av-worse" : "av-better"), ", ",
    element("span", { title: WAITING, textContent: waiting }),
    ...headsAside(side) ? [" ", element("span", { textContent: headsAside(side).trim() })] : [],
    ...changeOf(100 * share, 100 * (before?.summary.idle_share ?? NaN),
      (by) => `${by.toFixed(1)} pt`, than)]);
}

/** By how much a number, written with a digit after the point, is more or less than before the last
 *  change of a parameter. */
function changeOf(
  now: number | null, then: number | null | undefined, written: (by: number) => string,
  title: string, look: (by: number) => string = () => "",
) {
  const by = difference(now ?? NaN, then ?? NaN, 1);
  if (!by) return []; // as much, or not known
  const textContent = `(${by > 0 ? "+" : "−"}${written(Math.abs(by))})`;
  return [" ", element("span", { className: look(by), title, textContent })];
}

const meaningOf = ({ name, meaning }: Parameter) => `${name}, of the first setting: ${meaning}.`;

/** A menu of values that are no numbers, such as words and flags. */
function wordControl(parameter: Parameter, then: (value: Value) => void): ParameterControl {
  const { name, values } = parameter;
  const { box, update } = menuControl(name, name, meaningOf(parameter),
    (text) => then(values.find((value) => String(value) === text)!));
  return { box, update: (offered, value) => update(offered.map(String), String(value)) };
}

/** The height of so many controls, of 28 pixels with gaps of 4, `across` in a row. */
const heightOf = (controls: number, across: number) =>
  Math.max(0, 32 * Math.ceil(controls / across) - 4);

const controlsIn = (tree: Tree): string[] => tree === null || typeof tree !== "object" ? []
  : [tree.over, ...tree.each.flatMap(controlsIn)];

/** Whether a parameter moves anything that is shown: the partition, or which time was recorded. */
function moves({ scheme }: Strategy, parameter: Parameter, times: Times | null = null) {
  const { name, values, value, default: usual } = parameter;
  if (values.length < 2) return false;
  if (!scheme) return true;
  const trees = [scheme.kind, ...Object.values({ ...scheme.arguments, ...scheme.lanes })];
  return name in (times?.curves ?? {}) ||
    trees.some((tree) => controlsIn(tree).includes(name)) ||
    typeof value !== "number" && times !== null && times.recorded !== null &&
    ["boolean", "string"].includes(typeof usual);
}
