// A bar chart that the learner draws as a prediction. After the answer, the right bars are drawn
// behind the learner's.

import { render } from "./controls";
import { path, mutedText, rect } from "./marks";
import { clamp } from "./numbers";
import { type Axis, axis, chart, frame, widthOf } from "./plot";

const HEIGHT = 220;
const PAGE_SHARE = 1 / 8; // of the axis, by which PageUp and PageDown change a bar

/** The right values, the name of what a bar stands for, its unit, and the axis' maximum. */
export interface BarsData {
  answer: number[]; bar: string; unit: string; most: number;
}

/** Draw the bars of `values`. `onChange(index, value)` must store the value in `values`; the bars
 *  are then redrawn. It is also called, with the same value, if only the current bar changes. It is
 *  null once the answer is shown. */
export function bars(
  host: HTMLElement, { answer, bar, unit, most }: BarsData, values: number[],
  onChange: ((index: number, value: number) => void) | null,
) {
  const end = onChange ? most : Math.max(most, ...answer, ...values);
  let current = 0, x: Axis, y: Axis;
  host.classList.add("av-bars");
  if (onChange) makeDrawable(onChange);
  new ResizeObserver(draw).observe(host); // also triggers the first drawing

  function draw() {
    if (!host.isConnected) return;
    const width = Math.min(widthOf(host), 640), slot = (width - 66) / answer.length;
    x = axis(0, answer.length, 56, width - 10);
    y = axis(0, end, HEIGHT - 44, 10);
    let drawn = frame(x, y, bar, unit, false);
    const every = Math.ceil(28 / slot);
    const column = (i: number, value: number, look: string) =>
      rect(x(i) + 0.08 * slot, y(value), 0.84 * slot, y.start - y(value), { class: look });
    answer.forEach((value, i) => {
      // The learner's bars are solid while they are drawn. Later they are outlines before the
      // right ones, which are solid.
      if (!onChange) drawn += column(i, value, "av-side-A");
      drawn += column(i, values[i], onChange ? "av-side-A" : "av-mine");
      if (i % every === 0) drawn += mutedText(x(i + 0.5), y.start + 16, i, "middle");
    });
    if (onChange)
      drawn += path(`M${x(current)} ${y.start + 3}H${x(current + 1)}`, { class: "av-at" });
    const label = `Your bars: ${values.join(", ")}` +
      (onChange ? "" : `; the right ones: ${answer.join(", ")}`);
    render(chart(width, HEIGHT, drawn, label,
      onChange ? [] : [["av-side-A", "so it is"], ["av-mine", "as you drew it"]]), host);
    if (onChange)
      Object.assign(host, { ariaValueMin: "0", ariaValueMax: String(most),
        ariaValueNow: String(values[current]),
        ariaValueText: `${bar} ${current}: ${values[current]} ${unit}` });
  }

  function makeDrawable(onChange: (index: number, value: number) => void) {
    const setHeight = (value: number) => {
      onChange(current, clamp(Math.round(value), 0, most));
      draw();
    };
    Object.assign(host, { tabIndex: 0, role: "slider", ariaLabel: `${unit} of each ${bar}` });
    host.dataset.lmSuppressShortcuts = "true"; // JupyterLab: no shortcuts while this has the focus
    host.onkeydown = (event) => {
      const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const page = PAGE_SHARE * most;
      const up = { ArrowUp: 1, ArrowDown: -1, PageUp: page, PageDown: -page }[event.key];
      if (!across && !up || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      current = clamp(current + (across ?? 0), 0, answer.length - 1);
      setHeight(values[current] + (up ?? 0));
    };
    host.onpointerdown = (event) => {
      host.setPointerCapture(event.pointerId);
      followPointer(event);
    };
    const followPointer = host.onpointermove = (event: PointerEvent) => {
      if (!host.hasPointerCapture(event.pointerId)) return;
      const area = host.getBoundingClientRect();
      const share = (event.clientX - area.left - x.start) / (x.stop - x.start);
      current = clamp(Math.floor(share * answer.length), 0, answer.length - 1);
      setHeight(((y.start - (event.clientY - area.top)) / (y.start - y.stop)) * most);
    };
  }
}
