// Bars that a learner draws, and afterwards the right ones behind them.

import { quiet } from "./controls";
import { path, picture, rect, words } from "./marks";
import { axis, frame, widthOf } from "./plot";

const HEIGHT = 220;

/** Draw the bars of `values`; `take(place, value)` is called for a change, and is null once the
 *  answer may be seen. */
export function bars(host, { answer, bar, unit, most }, values, take) {
  const end = take ? most : Math.max(most, ...answer, ...values);
  let at = 0, x = null, y = null;
  host.className = "av-draw av-bars";
  if (take) begin();
  new ResizeObserver(draw).observe(host); // which draws it for the first time, too

  function draw() {
    if (!host.isConnected) return;
    const width = Math.min(widthOf(host), 640), slot = (width - 66) / answer.length;
    x = axis(0, answer.length, 56, width - 10);
    y = axis(0, end, HEIGHT - 44, 10);
    let drawn = frame(x, y, bar, unit, false);
    const every = Math.ceil(28 / slot);
    answer.forEach((right, i) => {
      const left = x(i) + 0.08 * slot, wide = 0.84 * slot;
      if (!take) drawn += rect(left, y(right), wide, y.start - y(right), { class: "av-side-A" });
      drawn += rect(left, y(values[i]), wide, y.start - y(values[i]),
        { class: take ? "av-side-A" : "av-mine" });
      if (i % every === 0) drawn += words(x(i + 0.5), y.start + 16, i, "middle", { class: "av-q" });
    });
    if (take) drawn += path(`M${x(at)} ${y.start + 3}H${x(at + 1)}`, { class: "av-at" });
    const said = (all) => all.join(", ");
    host.innerHTML = picture(width, HEIGHT, drawn, take ? `Your bars: ${said(values)}`
      : `Your bars: ${said(values)}; the right ones: ${said(answer)}`) +
      (take ? "" : '<p class="av-note"><span class="av-key av-side-A"></span> so it is &nbsp; ' +
        '<span class="av-key av-mine"></span> as you drew it</p>');
    if (!take) return;
    const limits = { valuemin: 0, valuemax: most, valuenow: values[at],
      valuetext: `${bar} ${at}: ${values[at]} ${unit}` };
    for (const name in limits) host.setAttribute(`aria-${name}`, limits[name]);
  }

  function begin() {
    quiet(host);
    host.tabIndex = 0;
    host.setAttribute("role", "slider");
    host.setAttribute("aria-label", `${unit} of each ${bar}`);
    host.onkeydown = (event) => {
      const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const up = { ArrowUp: 1, ArrowDown: -1, PageUp: most / 8, PageDown: -most / 8 }[event.key];
      if (!across && !up || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      at = Math.max(0, Math.min(at + (across ?? 0), answer.length - 1));
      if (up) put(values[at] + up);
      draw();
    };
    const hold = (event) => {
      const area = host.getBoundingClientRect(), part = (event.clientX - area.left - x.start) / (x.stop - x.start);
      at = Math.max(0, Math.min(Math.floor(part * answer.length), answer.length - 1));
      put(((y.start - (event.clientY - area.top)) / (y.start - y.stop)) * most);
      draw();
    };
    host.onpointerdown = (event) => {
      host.setPointerCapture(event.pointerId);
      hold(event);
    };
    host.onpointermove = (event) => host.hasPointerCapture(event.pointerId) && hold(event);
  }

  function put(value) {
    take(at, Math.max(0, Math.min(Math.round(value), most)));
  }
}
