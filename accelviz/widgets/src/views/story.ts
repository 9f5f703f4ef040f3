// The story, with which a page opens: five steps of one picture, one sentence and one slider. Each
// step frames a mark, which grows into the next picture: a warp's row, the row's block, the block's
// bits, what its warps read. The reader predicts what fewer warps in a block change, drags, and the
// recorded time answers.

import { prefersNoMotion, recordPositions, startZoom } from "../animation";
import { button, drawing, html, render, slider } from "../controls";
import { sayBeside, timesOfChange } from "../header";
import { capitalize, count, micros, number, percent } from "../numbers";
import type { View } from "../panel";
import { widthOf } from "../plot";
import { quartilesOverlap } from "../times";
import type { Parameter, Picture, Scene, Side } from "../types";
import { blockPicture, orderPicture } from "./assignment";
import { causesOf } from "./charts";
import { focusOf } from "./focus";
import {
  type FollowedRow, followedRow, recordOf, rowAt, type Work, workOf,
} from "./followed";
import { map } from "./map";
import { readsPicture, loadOf, loadSentence, sectorsSentence } from "./reads";
import { meaningOf, rowSummary, stepSentence, workersText } from "./sentences";
import { metadataStrip } from "./strips";

const PLAY_TIME = 2600; // milliseconds in which the bars of a block fill
const JUMPS = 8; // in which they fill for readers who prefer reduced motion

const GUESSES = ["falls", "stays", "rises"];

interface Step {
  name: string;
  /** The picture; null if there is none, or if it has a view of its own. */
  picture(row: FollowedRow, width: number): Picture | null;
  sentence(row: FollowedRow): unknown;
  /** What its marks mean, and its terms. */
  caption?(row: FollowedRow): unknown;
  /** CSS selector of the mark that grows into the next picture, and what that picture shows. */
  mark(row: FollowedRow): string;
  next(row: FollowedRow): string;
}

/** The block with the largest idle share, of equal ones the longest, as the map ranks them. */
export function idlestBlock({ partition, hardware }: Side) {
  const kinds = partition!.kinds(hardware!.rowPerLane), idlest = new Set<number>();
  let most = -1, longest = 0;
  kinds.loads.forEach((loads, kind) => {
    if (!kinds.counts[kind]) return;
    const share = hardware!.idleShareOf(loads), { longest: length } = hardware!.occupancyOf(loads);
    if (share < most || share === most && length < longest) return;
    if (share > most || length > longest) idlest.clear();
    idlest.add(kind);
    [most, longest] = [share, length];
  });
  for (let block = 0; block < partition!.blocks; block++)
    if (idlest.has(kinds.of(block))) return block;
  return 0;
}

/** The row with most nonzeros in a block's busiest warp. */
export function busiestRow({ order }: Side, { segments, busiest, runs }: Work) {
  const [first, ...others] = segments[busiest].map(({ run }) => run);
  const longest = others.reduce((a, b) => (b.count > a.count ? b : a), first ?? runs[0]);
  return longest ? order?.[longest.position] ?? longest.position : null;
}

/** Why warps of the block have no work at all, where the partition scheme gives the reason. */
function reasonForNone({ work, side: { scheme, partition }, graph, side }: FollowedRow) {
  const { steps, runs, block } = work!, without = steps.filter((load) => !load).length;
  if (!without || !runs.length) return "";
  const rows = [...new Set(runs.map(({ position }) => position))];
  const degree = graph.degrees[side.order?.[rows[0]] ?? rows[0]];
  const summed = runs.reduce((sum, run) => sum + run.count, 0);
  const [warps, have] = without > 1 ? ["warps", "have"] : ["warp", "has"];
  const statement = ` ${number(without)} ${warps} ${have} no work`;
  if (scheme === "block_level" || scheme === "lane_groups")
    return summed < rows.length * degree
      ? `${statement}: the block has a part of a long row, ${count(summed, "nonzero")}.`
      : `${statement}: a block takes rows of one length only, and ${
        rows.length > 1 ? `just ${number(rows.length)} rows` : "just one row"} of ${
        count(degree, "nonzero")} ${rows.length > 1 ? "are" : "is"} left for it.`;
  return block < partition!.blocks - 1 ? ""
    : `${statement}: it is the last block, and no more is left.`;
}

const recordsOf = (row: FollowedRow) => (row.partition ? recordOf(row) : null);

const STEPS: Step[] = [
  {
    name: "Who idles",
    picture: (row, width) => row.work && blockPicture(row, width),
    sentence(row) {
      const { steps, most, block, idleShare } = row.work!, { unit } = row.side.hardware!;
      const warpsWith = (has: (load: number) => boolean) =>
        steps.flatMap((load, warp) => (has(load) ? [warp] : []));
      const idle = warpsWith((load) => load < most), busy = warpsWith((load) => load === most);
      if (steps.length === 1)
        return `Block ${number(block)} is one warp and ends with it: none idles.`;
      const start = `The ${count(steps.length, "warp")} of block ${number(block)} start ` +
        "together, and the block ends with the last of them. ";
      if (!idle.length) return `${start}All have as much: none idles.`;
      const [has, they] = busy.length > 1 ? ["have", "they are"] : ["has", "it is"];
      const runs = new Set(row.work!.segments[busy[0]].map(({ run }) => run));
      const summed = [...runs].reduce((sum, run) => sum + run.count, 0);
      const load = unit === "nonzero" ? count(most, unit)
        : `${count(most, unit)} to do for ${count(summed, "nonzero")}`;
      return `${start}${capitalize(workersText("warp", busy))} ${has} ${load}: until ${
        they} done, ${
        workersText("warp", idle)} ${idle.length > 1 ? "idle" : "idles"}. That is ${
        percent(idleShare)} of the block's warp time.${reasonForNone(row)}`;
    },
    caption: (row) => html`<span
      class="av-key av-row"></span> nonzeros of row ${number(row.row)} &nbsp; ${
        row.work!.runs.every((run) => run.position === row.position) ? ""
          : html`<span class="av-key av-rest"></span> of other rows &nbsp; `}<span
      class="av-key av-hatched"></span> idle. A warp is 32 threads of the GPU that work in step; a
      block is a group of warps, to which ${row.side.strategy} gives rows of the matrix. ${
        stepSentence(row)}`,
    mark: ({ position }) => `[data-m^="b"][data-m*=" ${position} "]`,
    next: ({ row }) => `row ${number(row)}`,
  },
  {
    name: "Where a row goes",
    picture: (row, width) => row.work && orderPicture(row, width),
    sentence: (row) => `${rowSummary(row).way.map(([, text]) => text).join(" → ")}. ${
      row.side.order ? "Sorted by degree, rows of a block are alike." : ""}`,
    mark: () => '[data-m="block"]',
    next: () => "all blocks",
  },
  {
    name: "All blocks",
    picture: () => null,
    sentence: ({ side: { summary, label } }) => `${label} launches ${
      count(summary.blocks ?? 0, "block")} with ${count(summary.warps ?? 0, "warp")}, of which ${
      count((summary.warps ?? 0) - (summary.busy_warps ?? 0), "warp")} have no work at all. Over ` +
      `all blocks ${percent(summary.idle_share)} of warp time is idle.`,
    mark: () => ".av-map-cursor",
    next: ({ work }) => `the bits of block ${number(work!.block)}`,
  },
  {
    name: "The bits",
    picture(row, width) {
      const record = recordsOf(row);
      return record ? metadataStrip(row, width, record) : null;
    },
    sentence(row) {
      const record = recordsOf(row);
      return record ? `This is all that tells ${record.title} its work: ${
        count(32 * record.words.length, "bit")}. ${record.meaning
        ? `They say: ${meaningOf(row, record)}.` : ""}`
        : `${row.side.label} has no metadata: a ${row.worker} finds its rows from its own number.`;
    },
    mark: () => 'rect[data-f^="field:"]',
    next: ({ reads }) => `what it reads of ${reads}`,
  },
  {
    name: "Memory",
    picture: (row, width) => row.columns?.length ? readsPicture(row, width, 0) : null,
    sentence(row) {
      const drawn = row.columns?.length ? readsPicture(row, 600, 0) : null;
      const load = drawn && loadOf(row, drawn.rows);
      return `Each nonzero of row ${number(row.row)} reads a row of ${row.reads}. ${
        load ? loadSentence(row, load) : ""} ${sectorsSentence(row)}`.trim();
    },
    mark: () => "",
    next: () => "",
  },
];

export const story: View = (host, act) => {
  const mapHost = document.createElement("div");
  const drawMap = map(mapHost, { ...act, set: (change) =>
    change.block === undefined ? act.set(change) : choose(change.block) });
  let step = 0, guess = "", begin: Scene | null = null, scene!: Scene, start = 0;
  let row!: FollowedRow, chosen: { graph: string; key: string; row: number } | null = null;
  let requestedRow = "", isAway = false;
  const drawnWidth = () => Math.min(widthOf(host), 900);
  const stage = () => host.querySelector<HTMLElement>(".av-stage");

  /** The scene with the row and the block that the story follows. */
  function sceneAt(block: number, index: number): Scene {
    const records = scene.a.partition!.metadata(block);
    return { ...scene, b: null, metadata: records && { owner: scene.a.owner, records },
      settings: { ...scene.settings, second: null, block, row: index } };
  }

  /** Follow the longest row of the busiest warp of a block, or another row of it. */
  function choose(block: number, wanted: number | null = null) {
    const { a, settings } = scene, work = workOf(a, a.partition!, block);
    const index = wanted ?? busiestRow(a, work) ?? settings.row;
    row = followedRow(sceneAt(block, index));
    if (!row.columns && !scene.hasKernel && step > 3) // the page has one row's columns
      row = followedRow(sceneAt(settings.block, settings.row));
    chosen = { graph: settings.graph, key: a.key, row: index };
    draw();
  }

  /** Keep the followed row after a change of the setting; the first step shows the idlest block. */
  function follow() {
    const { a, settings, graph: { degrees, largest } } = scene;
    const before = chosen?.graph === settings.graph ? chosen : null;
    // A call may name a row; without one, the page has the longest.
    const isNamed = !chosen && settings.row !== degrees.indexOf(largest);
    if (isAway || isNamed) {
      isAway = false;
      return choose(settings.block, settings.row);
    }
    if (before?.key === a.key) return choose(row.work!.block, before.row);
    if (!step || !before) return choose(idlestBlock(a));
    const [block = 0] = a.partition!.blocksOf(a.positionOf(before.row));
    choose(block, before.row);
  }

  /** The parameter that the slider changes: the first one with several numbers. */
  const knobOf = ({ first }: Scene) => first.parameters.find(({ values }) =>
    values.filter((value) => typeof value === "number").length > 1);

  /** The mark of the picture that grows into the next one, as a box on the screen. */
  function markBox() {
    const selector = STEPS[step].mark(row);
    return (selector && stage()!.querySelector(`:scope > :not(.av-zoomed) ${selector}`) ||
      stage()!).getBoundingClientRect();
  }

  function goTo(next: number, wanted: number | null = null) {
    if (next === step) return;
    const outward = next < step, zoom = startZoom(stage()!);
    if (wanted !== null) choose(row.work!.block, wanted);
    const box = markBox();
    step = next;
    choose(row.work!.block, row.row);
    zoom(outward ? markBox() : box, outward);
    if (!step) play();
  }

  // The other groups have the row and the block of the story, and it has theirs once it is back.
  // Play has those of the trace that a page without a kernel keeps, if it is one of this setting.
  act.leaving.set("story", (next) => {
    if (!row.work) return;
    const { hasKernel, hasTracedSetting, tracedSettings: traced } = scene;
    if (next === "play" && !hasKernel && hasTracedSetting && traced!.block !== row.work.block) {
      act.set({ row: traced!.row, block: traced!.block }, true);
      return act.say(`Play has block ${number(traced!.block)}, with row ${number(traced!.row)}: ` +
        "without a kernel, a page plays one block.", true);
    }
    isAway = true;
    act.set({ row: row.row, block: row.work.block }, true);
  });

  /** Let the bars fill. A reader who prefers reduced motion sees it in jumps, and only if asked. */
  function play(isAsked = false) {
    const began = start = performance.now(), isReduced = prefersNoMotion();
    const curtain = host.querySelector<HTMLElement>(".av-curtain");
    // Places in the drawing: on the screen, it may still be growing.
    const ticks = [...stage()!.querySelectorAll(".av-story-picture .av-tick")]
      .map((tick) => Number(tick.getAttribute("x")));
    const [first, end] = [Math.min(...ticks), Math.max(...ticks)], width = drawnWidth();
    const frame = (now: number) => {
      if (start !== began) return; // it was started again
      const passed = isReduced && !isAsked ? 1 : Math.min((now - began) / PLAY_TIME, 1);
      const share = isReduced ? Math.floor(passed * JUMPS) / JUMPS : passed;
      curtain?.style.setProperty("left",
        `${passed < 1 ? (100 * (first + share * (end - first))) / width : 100}%`);
      if (passed < 1 && curtain?.isConnected) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** What the slider has changed since the guess, and whether the guess was right. */
  function answer() {
    const knob = knobOf(scene)!, before = begin!.a, now = scene.a;
    if (before.parameters[knob.name] === now.parameters[knob.name])
      return html`<p>You say that it ${guess}. Drag the slider to ${
        typeof before.parameters[knob.name] === "number" ? "a smaller number" : "a number"}.</p>`;
    const change = now.summary.idle_share - before.summary.idle_share;
    const fact = Math.abs(change) < 0.0005 ? "stays" : change < 0 ? "falls" : "rises";
    const [was, is] = timesOfChange(before, now, scene.b) ?? [];
    const time = was && is
      ? ` In one run the time ${quartilesOverlap(was, is) ? "stays within its spread"
        : is.median < was.median ? "falls" : "rises"}: ${micros(was.median)} to ${
        micros(is.median)}.`
      : " No time was recorded for this setting.";
    return html`<p>${knob.name} ${before.parameters[knob.name]} to ${
      now.parameters[knob.name]}: the idle share <b>${fact}</b>, ${
      percent(before.summary.idle_share)} to ${percent(now.summary.idle_share)}; you said that it ${
      guess}${guess === fact ? ": right" : ""}. <b>${time}</b> ${button("guess again",
      "Predict again", "Begin from this setting", () => {
        guess = "";
        draw();
      })}</p><p>${changeText(before, now)}</p>`;
  }

  /** What else the slider has changed: blocks and warps without work; and why less idling may take
   *  more time. */
  function changeText(before: Side, now: Side) {
    const textOf = ({ summary: { blocks, warps, busy_warps } }: Side) =>
      blocks === null || warps === null || busy_warps === null ? null
        : [count(blocks, "block"), count(warps / (blocks || 1), "warp"),
            `${number(warps - busy_warps)} of ${count(warps, "warp")}`];
    const [was, is] = [before, now].map(textOf);
    if (!was || !is) return "";
    const counts = `${was[0]} of ${was[1]} became ${is[0]} of ${is[1]}; ${
      was[2]} had no work, now ${is[2]}.`;
    const [then, after] = timesOfChange(before, now, scene.b) ?? [];
    const idles = now.summary.idle_share - before.summary.idle_share;
    if (!then || !after) return counts;
    const slower = after.median - then.median;
    if (idles * slower >= 0) return counts;
    const pair: [Side, Side] = slower > 0 ? [now, before] : [before, now];
    const causes = causesOf(...pair, scene.operation.at_nonzeros);
    return `${counts} ${slower > 0 ? "Less idling, more time" : "More idling, less time"}: ${
      causes.length ? `the ${slower > 0 ? "new" : "old"} setting has more ${causes.join("; ")}. `
        : ""}An idle share does not say how long a kernel takes.`;
  }

  const ask = ({ name, meaning }: Parameter) => html`<p>${name}: ${meaning.split(";")[0]}.</p><p
    class="av-question">Predict: with a smaller ${name}, the share of idle warp time ${
      GUESSES.map((choice) => button(`guess ${choice}`, choice, "", () => {
        [guess, begin] = [choice, scene];
        draw();
      }))}</p>`;

  function draw() {
    const { a } = scene, knob = knobOf(scene), width = drawnWidth();
    const { picture, sentence, caption, next } = STEPS[step], drawn = picture(row, width);
    const last = step + 1 === STEPS.length;
    render(html`<div class="av-steps-bar" role="group" aria-label="steps">${
      STEPS.map(({ name }, i) => html`<button type="button" data-control="step ${i}"
        data-lm-suppress-shortcuts="true" aria-pressed=${i === step}
        @click=${() => goTo(i)}>${i + 1} ${name}</button>`)}</div>
      <p class="av-story-text" aria-live="polite">${sentence(row)}</p>
      <div class="av-stage" style="max-width: ${width}px"><div class="av-story-picture">${
        step === 2 ? mapHost : drawn ? html`${drawing(drawn.svg)}${
          step ? "" : html`<div class="av-curtain"></div>`}` : ""}</div></div>
      <p class="av-note av-story-caption">${caption?.(row)}</p>
      <p class="av-story-buttons">${step ? "" : button("play block", "Play",
        "Let the warps start again", () => play(true))} ${
        button("next step", last ? "From the start" : `Next: ${next(row)}`,
          last ? "" : "The framed mark grows into it", () => goTo(last ? 0 : step + 1))} ${
        button("all controls", `All controls, with row ${number(row.row)}`,
          "All strategies, graphs, settings and pictures; and a second setting to compare with",
          () => act.show("product"))}</p>
      ${knob ? html`<div class="av-story-knob">${slider(`story ${knob.name}`, knob.name,
        `${knob.meaning}.`, knob.values, a.parameters[knob.name],
        (value) => act.set({ parameters: { [knob.name]: value } }), sayBeside(act, knob.name),
        a.resolved[knob.name])}</div>
        <div class="av-story-answer" role="status">${guess ? answer() : ask(knob)}</div>` : ""}`,
    host);
    if (step === 2) drawMap(row.scene);
    const mark = STEPS[step].mark(row);
    if (mark) stage()!.querySelector(mark)?.classList.add("av-chosen");
  }

  act.link.listen(host, (token) => focusOf(row, token, {
    record: recordsOf(row), rows: step === 4 && row.columns?.length
      ? readsPicture(row, 600, 0).rows : [],
  }));

  /** The framed mark, or the bar of another row, grows when it is clicked. */
  host.addEventListener("click", ({ target }) => {
    const mark = (target as Element).closest<SVGElement>("[data-f]");
    if (!mark || !stage()?.contains(mark) || step + 1 === STEPS.length) return;
    const [kind, , worker, begins] = mark.dataset.f!.split(":");
    if (mark.matches(".av-chosen") || kind === "field") return goTo(step + 1);
    const run = kind === "run" && row.work!.runs.find(({ warp, start }) =>
      warp === Number(worker) && start === Number(begins));
    if (run) goTo(step + 1, rowAt(row, run.position));
  });

  let isFirst = true;
  return (newScene) => {
    const { a } = scene = newScene;
    if (begin && begin.settings.first !== scene.settings.first) guess = "";
    if (!a.partition?.blocks || !a.hardware)
      return render(html`<p class="av-note">${a.missingReason}</p>`, host);
    const animate = recordPositions(host);
    follow();
    animate();
    const key = `${scene.graph.name} ${row.row}`;
    if (scene.hasKernel && row.degree && !row.columns && requestedRow !== key) {
      requestedRow = key;
      act.ask({ columns: row.row });
    }
    if (isFirst && host.clientWidth) {
      isFirst = false;
      play();
    }
  };
};
