// How many warps have how many nonzeros, both sides on the same axes.

import { count, keysOf, number, picture, quietWords, rect } from "../marks";
import { short } from "../numbers";
import type { View } from "../panel";
import { axis, frame, widthOf } from "../plot";
import { binned, loadBins } from "../summary";
import type { Side } from "../types";
import { SIDES } from "./statistics";

const HEIGHT = 230, LEFT = 58;

export const loads: View = (host, { a, b }) => {
  const sides = [a, b].filter((side): side is Side => side !== null), width = widthOf(host);
  const known = sides.map((side) => side.summary.loads);
  if (!known.some(Boolean)) {
    host.innerHTML = `<p class="av-note">${a.silence}</p>`;
    return;
  }
  const bins = loadBins(Math.max(1, ...sides.map((side) => side.summary.largest || 1)));
  const counts = known.map((side) => (side ? [...binned(side, bins)] : []));
  const highest = Math.max(1, ...known.map((side) => side?.idle ?? 0), ...counts.flat());
  const y = axis(0.7, highest * 1.5, HEIGHT - 44, 12, true);
  const end = width - 8, slot = (end - LEFT) / (bins.length + 2);
  let drawn = frame(axis(0, 1, LEFT, end), y, "nonzeros of a warp", "warps", false);
  sides.forEach((side, i) => {
    const bar = (index: number, many: number, load: string) => {
      if (!many) return;
      drawn += rect(LEFT + (index + 0.06 + i * 0.43) * slot, y(many), slot * 0.42,
        y.start - y(many), {
          "class": `av-side-${"AB"[i]}`,
          "data-say": `${SIDES[i]}, ${side.label}: ${count(many, side.worker)} with ${load}`,
        });
    };
    bar(0, known[i]?.idle ?? 0, "no nonzero");
    counts[i].forEach((many, bin) => {
      const low = bin ? bins[bin - 1] + 1 : 1;
      const range = low >= bins[bin] ? number(bins[bin]) : `${number(low)} to ${number(bins[bin])}`;
      bar(bin + 2, many, `${range} nonzero${range === "1" ? "" : "s"}`);
    });
  });
  drawn += quietWords(LEFT + slot / 2, y.start + 16, "idle", "middle");
  const every = Math.max(1, Math.ceil(34 / slot));
  for (let bin = 0; bin < bins.length; bin += every)
    drawn += quietWords(LEFT + (bin + 2.5) * slot, y.start + 16, short(bins[bin]), "middle");
  const said = sides.map(({ label, summary: { largest, mean } }) =>
    `${label}: busiest ${short(largest)}, mean ${short(mean)} nonzeros`).join("; ");
  host.innerHTML = `<div class="av-draw">${picture(width, HEIGHT, drawn, said)}</div>` +
    keysOf(sides.map((side, i) => [`av-side-${"AB"[i]}`, `${SIDES[i]}: ${side.label}`]));
};
