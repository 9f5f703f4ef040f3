// How many warps have how many nonzeros, both sides on the same axes.

import { count, number, path, picture, rect, safe, words } from "../marks";
import { short } from "../numbers";
import { axis, frame, widthOf } from "../plot";
import { binned, loadBins } from "../summary";
import { SIDES } from "./statistics";

const HEIGHT = 230;

export function loads(host, scene) {
  const sides = [scene.a, scene.b].filter(Boolean), width = widthOf(host);
  const known = sides.map((side) => side.summary.loads);
  if (!known.some(Boolean)) {
    host.innerHTML = `<p class="av-note">${scene.a.silent}</p>`;
    return;
  }
  const most = Math.max(1, ...sides.map((side) => side.summary.largest || 1));
  const bins = loadBins(most), counts = known.map((own) => (own ? binned(own, bins) : null));
  const highest = Math.max(1, ...known.map((own) => own?.idle ?? 0),
    ...counts.flatMap((own) => (own ? [...own] : [])));
  const y = axis(0.7, highest * 1.5, HEIGHT - 44, 12, true);
  const left = 58, right = width - 8, slot = (right - left) / (bins.length + 2);
  let drawn = frame(axis(0, 1, left, right), y, "nonzeros of a warp", "warps", false);
  sides.forEach((side, i) => {
    if (!counts[i]) return;
    const bar = (place, many, what) => {
      if (!many) return;
      drawn += rect(left + (place + 0.06 + i * 0.43) * slot, y(many), slot * 0.42,
        y.start - y(many), { class: `av-side-${"AB"[i]}`,
          "data-say": `${SIDES[i]}, ${side.label}: ${count(many, side.worker)} with ${what}` });
    };
    bar(0, known[i].idle ?? 0, "no nonzero");
    counts[i].forEach((many, bin) => {
      const low = bin ? bins[bin - 1] + 1 : 1;
      const range = low >= bins[bin] ? number(bins[bin]) : `${number(low)} to ${number(bins[bin])}`;
      bar(bin + 2, many, `${range} nonzero${range === "1" ? "" : "s"}`);
    });
  });
  drawn += words(left + slot / 2, y.start + 16, "idle", "middle", { class: "av-q" });
  const every = Math.max(1, Math.ceil(34 / slot));
  for (let bin = 0; bin < bins.length; bin += every) {
    drawn += words(left + (bin + 2.5) * slot, y.start + 16, short(bins[bin]), "middle",
      { class: "av-q" });
  }
  const said = sides.map((side) => `${side.label}: busiest ${short(side.summary.largest)}, mean ` +
    `${short(side.summary.mean)} nonzeros`).join("; ");
  host.innerHTML = `<div class="av-draw">${picture(width, HEIGHT, drawn, said)}</div>` +
    `<p class="av-note">${sides.map((side, i) =>
      `<span class="av-entry"><span class="av-key av-side-${"AB"[i]}"></span> ${SIDES[i]}: ${safe(side.label)}</span>`)
      .join(" &nbsp; ")}</p>`;
}
