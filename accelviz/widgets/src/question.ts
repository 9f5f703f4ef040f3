// Which setting does best? So many guesses, and then the values of all settings.

import { element, pressButton, sliderControl } from "./controls";
import { makeLink } from "./link";
import { count, picture, rect, safe, words } from "./marks";
import { LOADS, widthOf } from "./plot";

const LINE = 26, LEFT = 60; // pixels: of a line of the grid, and beside it


export function question(panel, data, kept) {
  const { names, choices, values } = data;
  const lines = choices[1] ?? [null];
  const at = choices.map((each) => Math.floor(each.length / 2));
  const state = { guessed: [], revealed: false, ...kept.read() };
  const place = () => at[0] * lines.length + (at[1] ?? 0);
  const setting = (i) => [choices[0][Math.floor(i / lines.length)], lines[i % lines.length]]
    .filter((each) => each !== null).join(" × ");
  const known = values.filter((each) => !Number.isNaN(each));
  const better = (a, b) => (data.most ? a > b : a < b);
  const best = known.reduce((a, b) => (better(b, a) ? b : a));
  const worst = known.reduce((a, b) => (better(a, b) ? b : a));
  const rank = (i) => known.reduce((sum, each) => sum + better(each, values[i]), 1);
  const written = (value) => data.share ? `${(100 * value).toFixed(2)} %`
    : value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  const isFound = () => state.guessed.some((i) => values[i] === best);
  const mayReveal = () => isFound() || state.guessed.length >= data.guesses;

  const sliders = names.map((name, k) => sliderControl(name, name, "", (value) => {
    at[k] = choices[k].indexOf(value);
    show();
  }));
  const guess = pressButton("guess", "Lock this guess in", "", () => {
    state.guessed.push(place());
    show();
  });
  const reveal = pressButton("reveal", "Reveal", "Show the values of all settings", () => {
    state.revealed = true;
    show();
  });
  const now = element("p"), list = element("div", { attributes: { role: "status" } });
  const grid = element("div", { className: "av-draw" });
  const told = element("div");
  panel.append(element("p", {}, [element("b", { textContent: data.question })]),
    element("div", { className: "av-questioned" }, [
      element("div", {}, [...sliders.map((each) => each.box), now, guess, " ", reveal, list]),
      element("div", {}, [grid, told])]));
  makeLink(panel);
  function show() {
    kept.write(state);
    sliders.forEach((each, k) => each.update(choices[k], choices[k][at[k]]));
    const i = place(), used = state.guessed.includes(i), none = Number.isNaN(values[i]);
    now.textContent = none ? `${setting(i)}: these cannot be had together.` : said(i);
    guess.disabled = used || none || mayReveal();
    reveal.disabled = !mayReveal() || state.revealed;
    list.innerHTML = listed();
    told.innerHTML = answered();
    drawGrid();
  }

  const seen = (i) => state.revealed || state.guessed.includes(i);
  const said = (i) => `${setting(i)}: ` +
    (seen(i) ? `${written(values[i])}, place ${rank(i)} of ${known.length}.` : "guess first.");

  function listed() {
    const left = data.guesses - state.guessed.length;
    const hint = isFound() ? "Found it!"
      : left > 0 ? `${count(left, "guess", "guesses")} left. Think first: what does each parameter do to it?`
      : state.revealed ? "Compare your guesses with the best: what do the settings around it share?"
      : "No guess is left: say what you have learned, then reveal the answer.";
    const rows = state.guessed.map((i, k) => `<tr><th scope="row">${k + 1}. ${safe(setting(i))}</th>` +
      `<td>${written(values[i])}</td><td>${values[i] === best ? "best" : `place ${rank(i)}`}</td></tr>`);
    const head = `<tr><th scope="col">guess</th><th scope="col">value</th><th scope="col">of ${known.length}</th></tr>`;
    return (rows.length ? `<table><thead>${head}</thead><tbody>${rows.join("")}</tbody></table>` : "") +
      `<p class="av-note">${hint}</p>`;
  }

  function answered() {
    if (!state.revealed) return '<p class="av-note">Locked. Brighter will be better.</p>';
    const all = [...values.keys()].filter((i) => values[i] === best).map(setting);
    const more = all.length > 6 ? ` and ${all.length - 6} others` : "";
    return `<p>Best is ${written(best)}, at ${safe(all.slice(0, 6).join(", ") + more)} (framed). ` +
      `Brighter is better.</p>${data.explanation ? `<p>${safe(data.explanation)}</p>` : ""}`;
  }

  function drawGrid() {
    const across = choices[0].length, width = widthOf(grid), wide = (width - LEFT - 4) / across;
    const high = lines.length > 1 ? LINE : 2 * LINE, bottom = 8 + lines.length * high;
    let drawn = "", over = "";
    values.forEach((value, i) => {
      if (Number.isNaN(value)) return;
      const x = LEFT + Math.floor(i / lines.length) * wide, y = 8 + (i % lines.length) * high;
      const share = best === worst ? 0 : (value - best) / (worst - best);
      const fill = seen(i) ? LOADS.light[Math.round(share * (LOADS.light.length - 1))] : null;
      drawn += rect(x, y, wide - 1, high - 1, { class: fill ? null : "av-locked", fill, "data-say": said(i) });
      const edge = (name, inset) => rect(x + inset, y + inset, wide - 1 - 2 * inset, high - 1 - 2 * inset, { class: name });
      if (state.revealed && value === best) over += edge("av-best", 0);
      if (i === place()) over += edge("av-set", state.revealed && value === best ? 2.5 : 0);
    });
    const every = Math.max(1, Math.ceil(26 / wide));
    choices[0].forEach((value, k) => {
      if (k % every === 0) drawn += words(LEFT + (k + 0.5) * wide, bottom + 14, value, "middle", { class: "av-q" });
    });
    if (lines[0] !== null)
      lines.forEach((value, k) => (drawn += words(LEFT - 6, 8 + (k + 0.65) * high, value, "end", { class: "av-q" })));
    drawn += words(LEFT + (across * wide) / 2, bottom + 31, names[0], "middle", { class: "av-q" });
    if (names[1]) drawn += words(0, bottom + 31, names[1], "start", { class: "av-q" });
    const alt = `${data.called} of ${count(known.length, "setting")}` + (state.revealed ? "" : ", locked");
    grid.innerHTML = picture(width, bottom + 36, drawn + over, alt);
  }

  new ResizeObserver(drawGrid).observe(grid);
  show();
}
