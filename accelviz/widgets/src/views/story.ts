// The story, with which a page opens: five steps of one picture, one sentence and one slider. The
// reader predicts what fewer warps in a block change, drags, and the recorded time answers.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import { button, html, render, slider } from "../controls";
import { count, micros, number, percent } from "../numbers";
import type { View } from "../panel";
import { widthOf } from "../plot";
import type { Picture, Scene, Side } from "../types";
import { blockPicture, orderPicture } from "./assignment";
import { type FollowedRow, followedRow, workOf } from "./followed";
import { map } from "./map";
import { readsPicture, loadOf, loadSentence } from "./reads";
import { rowSummary, workersText } from "./sentences";
import { metadataStrip } from "./strips";

const PLAY_TIME = 2600; // milliseconds in which the bars of a block fill
const SAMPLED = 20000; // blocks looked at for the one that idles most

const GUESSES = ["falls", "stays", "rises"];

interface Step {
  name: string;
  picture(row: FollowedRow, width: number): Picture | null;
  sentence(row: FollowedRow, scene: Scene): unknown;
}

/** The block that idles longest: that with the most warp time lost. */
function idlestBlock({ partition, hardware }: Side) {
  const { blocks, warps } = partition!, loads = new Float64Array(warps);
  let worst = 0, most = -1;
  for (let block = 0; block < blocks; block += Math.ceil(blocks / SAMPLED)) {
    if (hardware!.rowPerLane) partition!.longestOf(block, loads);
    else partition!.loadsOf(block, loads);
    const { steps, slots } = hardware!.occupancyOf(loads);
    if (slots - steps > most) [worst, most] = [block, slots - steps];
  }
  return worst;
}

const STEPS: Step[] = [
  {
    name: "Who idles",
    picture: (row, width) => row.work && blockPicture(row, width),
    sentence(row) {
      const { steps, most, block, busiest, idleShare } = row.work!, { unit } = row.side.hardware!;
      const idle = steps.flatMap((load, warp) => (load < most ? [warp] : []));
      const warps = count(steps.length, "warp");
      const start = `The ${warps} of block ${number(block)} start together, ` +
        "and the block ends with the last of them. ";
      if (!idle.length) return `${start}All have as much: none idles.`;
      return `${start}Warp ${number(busiest)} has ${count(most, unit)}: until they are done, ${
        workersText("warp", idle)} ${idle.length > 1 ? "idle" : "idles"}. That is ${
        percent(idleShare)} of the block's warp time.`;
    },
  },
  {
    name: "Where a row goes",
    picture: (row, width) => row.work && orderPicture(row, width),
    sentence: (row) => `${rowSummary(row).way.map(([, text]) => text).join(" → ")}. ${
      row.side.order ? "Sorted by degree, rows of a block are alike." : ""}`,
  },
  {
    name: "All blocks",
    picture: () => null, // the map has a view of its own
    sentence: ({ side: { summary, label } }) => `${label} launches ${
      count(summary.blocks ?? 0, "block")} with ${count(summary.warps ?? 0, "warp")}, of which ${
      count((summary.warps ?? 0) - (summary.busy_warps ?? 0), "warp")} have no work at all. Over ` +
      `all blocks ${percent(summary.idle_share)} of warp time is idle.`,
  },
  {
    name: "The bits",
    picture(row, width) {
      const record = row.scene.metadata?.records[0];
      return record ? metadataStrip(row, width, record) : null;
    },
    sentence({ scene: { metadata }, side }) {
      const record = metadata?.records[0];
      return record ? `This is all that tells ${record.title} its work: ${
        count(32 * record.words.length, "bit")}. ${record.meaning
        ? `They say: ${record.meaning}.` : ""}`
        : `${side.label} has no metadata: a ${side.worker} finds its rows from its own number.`;
    },
  },
  {
    name: "Memory",
    picture: (row, width) => row.columns?.length ? readsPicture(row, width, 0) : null,
    sentence(row) {
      const drawn = row.columns?.length ? readsPicture(row, 600, 0) : null;
      const load = drawn && loadOf(row, drawn.rows);
      return `Each nonzero of row ${number(row.row)} reads a row of ${row.reads}. ` +
        (load ? loadSentence(row, load) : "");
    },
  },
];

export const story: View = (host, act) => {
  const mapHost = document.createElement("div"), drawMap = map(mapHost, act);
  let step = 0, guess = "", begin: Scene | null = null, scene!: Scene, start = 0;

  /** The parameter that the slider changes: the first one with several numbers. */
  const knobOf = ({ first }: Scene) => first.parameters.find(({ values }) =>
    values.filter((value) => typeof value === "number").length > 1);

  function play() {
    start = performance.now();
    const curtain = host.querySelector<SVGElement>(".av-curtain");
    const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const frame = (now: number) => {
      const share = reduced ? 1 : Math.min((now - start) / PLAY_TIME, 1);
      curtain?.style.setProperty("left", `${100 * share}%`);
      if (share < 1 && curtain?.isConnected) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** What the slider has changed since the guess, and whether the guess was right. */
  function answer() {
    const knob = knobOf(scene)!, before = begin!.a, now = scene.a;
    if (before.parameters[knob.name] === now.parameters[knob.name])
      return html`You say that it ${guess}. Drag the slider to ${
        typeof before.parameters[knob.name] === "number" ? "a smaller number" : "a number"}.`;
    const change = now.summary.idle_share - before.summary.idle_share;
    const fact = Math.abs(change) < 0.0005 ? "stays" : change < 0 ? "falls" : "rises";
    const [was, is] = [before.times.recorded, now.times.recorded];
    const time = was && is && was.run === is.run
      ? ` The time ${is.median < was.median ? "falls" : is.median > was.median ? "rises" : "stays"
      }: ${micros(was.median)} to ${micros(is.median)}.`
      : " No time was recorded for this setting.";
    return html`${knob.name} ${before.parameters[knob.name]} to ${
      now.parameters[knob.name]}: the idle share <b>${fact}</b>, ${
      percent(before.summary.idle_share)} to ${percent(now.summary.idle_share)}; you said that it ${
      guess}${guess === fact ? ": right" : ""}. <b>${time}</b> ${button("guess again",
      "Predict again", "Begin from this setting", () => {
        guess = "";
        draw();
      })}`;
  }

  const ask = (name: string) => html`Predict: with a smaller ${name}, the share of idle warp time ${
    GUESSES.map((choice) => button(`guess ${choice}`, choice, "", () => {
      [guess, begin] = [choice, scene];
      draw();
    }))}`;

  function draw() {
    const { a } = scene, knob = knobOf(scene), width = Math.min(widthOf(host), 900);
    if (!a.partition?.blocks || !a.hardware)
      return render(html`<p class="av-note">${a.missingReason}</p>`, host);
    let row = followedRow(scene);
    if (!step) row = { ...row, work: workOf(a, a.partition, idlestBlock(a)) };
    const { picture, sentence } = STEPS[step], drawn = picture(row, width);
    render(html`<div class="av-steps-bar" role="group" aria-label="steps">${
      STEPS.map(({ name }, i) => html`<button type="button" data-control="step ${i}"
        data-lm-suppress-shortcuts="true" aria-pressed=${i === step} @click=${() => {
          step = i;
          draw();
          if (!step) play();
        }}>${i + 1} ${name}</button>`)}</div>
      <p class="av-story-text">${sentence(row, scene)}</p>
      ${knob ? html`<div class="av-story-knob">${slider(`story ${knob.name}`, knob.name,
        `${knob.meaning}.`, knob.values, a.parameters[knob.name],
        (value) => act.set({ parameters: { [knob.name]: value } }), a.resolved[knob.name])}</div>
        <p class="av-story-answer" role="status">${guess ? answer() : ask(knob.name)}</p>` : ""}
      <div class="av-story-map" ?hidden=${step !== 2}>${mapHost}</div>
      <div class="av-story-picture" style="max-width: ${width}px">${drawn
        ? html`<div class="av-draw">${unsafeHTML(drawn.svg)}</div>${step ? ""
          : html`<div class="av-curtain"></div>`}` : ""}</div>
      <p>${step ? "" : button("play block", "Play", "Let the warps start again", play)} ${
        step + 1 < STEPS.length ? button("next step", "Next", "",
          () => {
            step += 1;
            draw();
          }) : ""} ${button("all controls", "All controls",
        "All strategies, graphs, settings and pictures", () => act.show("product"))}</p>`, host);
    if (step === 2) drawMap(scene);
  }

  let isFirst = true;
  return (newScene) => {
    scene = newScene;
    if (begin && begin.settings.first !== scene.settings.first) guess = "";
    draw();
    if (isFirst && host.clientWidth) {
      isFirst = false;
      play();
    }
  };
};
