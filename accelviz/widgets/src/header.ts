// The head and the controls of the panel: what is looked at, and what it is compared with.

import { element, menuControl, pressButton, sliderControl, stepsControl } from "./controls";
import { codeOf, copyText, headingOf, saveHtml, savePng, saveSvg, tour } from "./share";
import { apart, headsAside, micros, percent } from "./numbers";
import { PREDICTED } from "./times";
import { sentenceOf } from "./views/product";
import { MEANT, SIDES } from "./views/statistics";

export function controlsOf(act, panel) {
  const head = element("div", { className: "av-head" });
  const box = element("div", { className: "av-controls", attributes: { role: "group",
    "aria-label": "settings" } });
  const message = element("div", { className: "av-message", hidden: true,
    attributes: { role: "alert" } });
  const line = element("div", { className: "av-headline", attributes: { "aria-live": "polite" } });
  const buttons = element("div", { className: "av-buttons" });
  const undo = pressButton("undo", "Undo", "Undo the last change (Ctrl+Z)", act.undo);
  const redo = pressButton("redo", "Redo", "Redo (Ctrl+Shift+Z)", act.redo);
  const reset = pressButton("reset", "Reset", "Back to the settings of the call", act.reset);
  const code = pressButton("code", "Copy as code", "The call that opens the explorer like this",
    async () => {
      const text = codeOf(last);
      const copied = await copyText(text);
      act.say(copied ? `Copied: ${text}` : `Copy this: ${text}`, copied);
    });
  const save = (keep) => () => keep(panel.querySelector(".av-group:not([hidden])"),
    last.graph.name, headingOf(last, sentenceOf(last)));
  const svg = pressButton("svg", "SVG", "Save the pictures that are seen as SVG", save(saveSvg));
  const png = pressButton("png", "PNG", "Save the pictures that are seen as PNG", save(savePng));
  const html = pressButton("html", "HTML", "Save a page of its own, alive without a kernel", async () => {
    const { alive, traced, packed } = last, saved = await saveHtml(panel.parentElement, last, panel.dataset.shown);
    const plays = traced?.graph === packed ? `, with block ${traced.block.toLocaleString("en")} to play`
      : alive ? ". A block that is traced before, in Play, is kept in it"
      : '; explore(...).save("x.html") in Python adds a block to play';
    act.say(saved ? `Saved as ${saved}${plays}.`
      : 'Python saves what this page has not: press "Copy as code", and add .save("x.html") to the call.',
    Boolean(saved));
  });
  const cancel = pressButton("cancel", "Cancel", "Do not wait for it", act.cancel);
  const guide = pressButton("tour", "Tour", "What is what, in a minute",
    () => tour(panel, act.show, last.alive || last.traced));
  let last = null; // the scene that is shown
  buttons.append(undo, redo, reset, code, svg, png, html, guide);
  const told = element("span", { attributes: { role: "status" } });
  const progress = element("div", { className: "av-progress", hidden: true },
    [told, " ", cancel]);
  head.append(line, buttons);
  const what = element("div", { className: "av-what" });
  // Below the views, where it moves nothing; it stays in sight.
  const notes = element("div", { className: "av-notes" }, [message, progress]);

  const graph = menuControl("graph", "graph", "The graph whose adjacency matrix is A", (value) => act.set({ graph: value }));
  const first = menuControl("first", "strategy", "What the first setting is a setting of: how the work is cut up and dealt out. " +
    "Strategies of other operations are in panels of their own: accelviz.explore(graph, operation=\"gat\")", (value) => act.set({ first: value }));
  const second = menuControl("second", "compare with", "What the first is compared with: a strategy in its default setting, or what was pinned",
    (value) => act.set({ second: value || null, pinned: {} }));
  const pin = pressButton("pin", "Pin first", "Keep the first setting as the second, and change the first from here on", act.pin);
  const swap = pressButton("swap", "Swap", "The second becomes the first, and the first the second", act.swap);
  const columns = sliderControl("n_cols", "columns", "Columns of a row of features: numbers that each nonzero is multiplied with",
    (value) => act.set({ nCols: value }));
  const row = stepsControl("row", "follow row", "The row of the matrix, a node of the graph, that all pictures follow",
    (value) => act.set({ row: value }));
  const block = stepsControl("block", "block", "The block of warps that is shown: one of those that have the row",
    (value) => act.set({ block: value }));
  const own = new Map(); // name of a parameter to its control
  const parameters = element("div", { className: "av-parameters" });
  const compare = element("div", { className: "av-control av-compare" },
    [second.box, pin, swap]);
  first.box.prepend(markOf(0));
  second.box.firstChild.replaceWith(markOf(1)); // short: the strategy and how it is set need the room
  // What each strategy has more or fewer of comes last, and moves none of the others.
  box.append(graph.box, first.box, compare, columns.box, row.box, block.box, parameters);

  panel.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.shiftKey) act.redo();
    else act.undo();
  });

  function update(scene) {
    const { a, b, settings } = last = scene;
    const operation = scene.operation.name === "spmm" ? "" : `${scene.operation.name} on `;
    line.replaceChildren(element("div", { className: "av-graph" }, [
      operation, element("b", { textContent: scene.graph.name }), `, ${scene.graph.rows.toLocaleString("en")} rows, ` +
      `${scene.graph.nnz.toLocaleString("en")} nonzeros`]),
    element("div", { className: "av-sides" }, [a, b].map((each, i) => each ? sideOf(each, i, i ? null : scene.before)
      : element("div", { className: "av-of-side" }, [markOf(i), " nothing to compare with"]))));
    message.textContent = scene.message;
    message.hidden = !scene.message;
    message.classList.toggle("av-gentle", !scene.warns);
    progress.hidden = !scene.progress;
    if (told.textContent !== scene.progress) told.textContent = scene.progress;
    undo.disabled = !scene.canUndo;
    redo.disabled = !scene.canRedo;
    graph.update(scene.graphs, settings.graph);
    const names = scene.strategies.map((each) => each.name);
    const said = scene.strategies.map((each) => `${each.name}: ${each.summary}`);
    first.update(names, settings.first, said);
    second.update(["", ...names], settings.second ?? "", // as it is set, where it is chosen
      ["nothing", ...said.map((each, i) => (names[i] === b?.strategy ? b.label : each))]);
    columns.update(scene.columns, settings.nCols);
    row.update(scene.graph.rows - 1, settings.row);
    block.update((a.partition?.blocks ?? 0) - 1, settings.block);
    const wanted = scene.first.parameters.filter((each) => moves(scene.first, each, a.times));
    for (const each of wanted) {
      if (own.has(each.name)) continue;
      const then = (value) => act.set({ given: { [each.name]: value } });
      own.set(each.name, each.values.some((value) => typeof value === "number")
        ? sliderControl(each.name, each.name, meaningOf(each), then)
        : wordControl(each, then));
    }
    for (const each of wanted) own.get(each.name).update(each.values, a.parameters[each.name], a.settled[each.name]);
    const boxes = wanted.map((each) => own.get(each.name).box);
    for (const each of [...parameters.children]) if (!boxes.includes(each)) each.remove();
    boxes.forEach((each, i) => {
      if (parameters.children[i] !== each) parameters.insertBefore(each, parameters.children[i]);
    });
    swap.disabled = !b;
    // Room below for the parameters of whichever strategy has most, so that nothing there moves;
    // meanwhile it says what they do.
    what.replaceChildren(...[a, b?.strategy === a.strategy ? null : b].filter(Boolean).map(({ strategy }, i) => element("div", {}, [
      element("b", { textContent: SIDES[i] }),
      ` ${strategy}: ${scene.strategies.find((each) => each.name === strategy).summary}.`])));
    const most = Math.max(wanted.length, ...scene.strategies.map((strategy) =>
      strategy.parameters.filter((each) => moves(strategy, each)).length));
    for (const across of [2, 3, 4])
      panel.style.setProperty(`--av-spare-${across}`,
        `${high(most, across) - high(wanted.length, across)}px`);
  }

  return { head, box, what, notes, update };
}

const markOf = (i) => element("span", { className: `av-mark av-${"AB"[i]}`, textContent: SIDES[i],
  title: MEANT[SIDES[i]] });

// A setting in the headline: how long it takes, and how much of its warp time is waiting.
function sideOf(side, i, before) {
  const { label, said, summary, waiting, times: { recorded, predicted, where: machine } } = side;
  const share = summary.idle_share;
  const [time, how] = recorded !== null ? [micros(recorded), "recorded"]
    : predicted !== null ? [`≈ ${micros(predicted)}`, "predicted"] : ["", "no time recorded"];
  const where = time && `Median time of the kernel, ${how === "recorded" ? "measured" : "predicted from what was measured"} on ` +
    `${machine.replace(", ", " on ")}, and not where this page is open.` +
    (how === "recorded" ? "" : ` This setting was not measured: it is ${PREDICTED}`);
  const then = before?.times.recorded ?? before?.times.predicted;
  const sure = recorded !== null && typeof before?.times.recorded === "number"; // a prediction is no verdict
  const than = before && `Than with ${before.label}, before the last change.`;
  return element("div", { className: "av-of-side" }, [
    markOf(i), " ", element("span", { textContent: label, title: said }), ": ", element(recorded !== null ? "b" : "span", { textContent: time, title: where }), time && " ",
    element("span", { textContent: how, title: where }),
    ...changeOf(recorded ?? predicted, then, micros, than,
      (by) => !sure ? "" : by > 0 ? "av-worse" : "av-better"), ", ",
    element("span", { title: WAITING, textContent: Number.isNaN(share)
      ? waiting ? "its warps are not listed here" : "does not say what its warps do"
      : `${percent(share)} of warp time waiting` }),
    ...headsAside(side) ? [" ", element("span", { textContent: headsAside(side).trim() })] : [],
    ...changeOf(100 * share, 100 * before?.summary.idle_share, (by) => `${by.toFixed(1)} pt`, than)]);
}

// By how much a number, written with a digit after the point, is more or less than before the last
// change of a parameter.
function changeOf(now, then, written, title, look = () => "") {
  const by = apart(now ?? NaN, then ?? NaN, 1);
  if (!by) return []; // as much, or not known
  return [" ", element("span", { className: look(by), title,
    textContent: `(${by > 0 ? "+" : "−"}${written(Math.abs(by))})` })];
}

const WAITING = "A block lasts as long as its busiest warp; this share of the warps' time has no " +
  "nonzero to sum. Less waiting may take longer: it counts nonzeros alone, and blocks, metadata, " +
  "atomics and how lanes read cost time, too.";

const meaningOf = ({ name, meaning }) => `${name}, of the first setting: ${meaning}.`;

// A menu of values that are no numbers, such as words and flags.
function wordControl({ name, meaning, values }, then) {
  const control = menuControl(name, name, meaningOf({ name, meaning }),
    (text) => then(values.find((value) => String(value) === text)));
  return { box: control.box,
    update: (offered, value) => control.update(offered.map(String), String(value)) };
}

// The height of so many controls, of 28 pixels with gaps of 4, `across` in a row.
const high = (controls, across) => Math.max(0, 32 * Math.ceil(controls / across) - 4);

// Whether a parameter moves anything that is shown: the cut, or which time was recorded.
function moves(strategy, parameter, times = null) {
  if (parameter.values.length < 2) return false;
  const { cut } = strategy;
  if (!cut) return true;
  const names = (tree) => tree === null || typeof tree !== "object" ? []
    : [tree.over, ...tree.each.flatMap(names)];
  const over = (strategy.over ??= new Set(
    Object.entries(cut).flatMap(([key, tree]) => (key.startsWith("settled ") ? [] : names(tree)))));
  return over.has(parameter.name) || parameter.name in (times?.curves ?? {}) ||
    typeof parameter.value !== "number" && times?.recorded !== null &&
    ["boolean", "string"].includes(typeof parameter.default);
}
