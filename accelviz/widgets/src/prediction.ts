// A prediction: a number, one of several choices, all of them in order, or bars that are drawn. Only
// then the answer is shown, and how good the prediction was.

import { bars } from "./bars";
import { element, pressButton, quiet } from "./controls";
import { safe } from "./marks";

const NO_NUMBER = "That is no number. Expected: a number, such as 12 or 0.5.";

/** A number with three digits, or whole where it is. */
export function figures(value) {
  if (Number.isInteger(value) || Math.abs(value) >= 1000)
    return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(3)));
}

export function written({ form, unit }, value) {
  if (form === "order") return value.map((each, i) => `${i + 1}. ${each}`).join(", ");
  if (form === "drawn") return value.map(figures).join(", ");
  return form === "choice" ? value : `${figures(value)} ${unit}`.trimEnd();
}

/** The number that somebody typed, NaN if it is none. */
export function typed(text, unit) {
  let bare = text.replaceAll(",", "").trim();
  if (unit && bare.endsWith(unit)) bare = bare.slice(0, -unit.length);
  bare = bare.replace(/%\s*$/, "").trim();
  return bare && Number.isFinite(Number(bare)) ? Number(bare) : NaN;
}

/** How good a prediction was. */
export function judged(data, made) {
  const { form, answer, within } = data;
  if (form === "drawn") {
    const sum = (pick) => answer.reduce((all, right, i) => all + pick(right, made[i]), 0);
    const share = sum(Math.min) / (sum(Math.max) || 1);
    if (share === 1) return "Right.";
    return `Your bars and the right ones have ${Math.floor(100 * share)} % in common.`;
  }
  if (form === "order") {
    const right = answer.filter((each, i) => each === made[i]).length;
    return right === answer.length ? "Right." : `${right} of ${answer.length} places agree.`;
  }
  if (written(data, made) === written(data, answer)) return "Right.";
  if (form === "choice") return "Not so.";
  if (made * answer <= 0) return `Off by ${written(data, Math.abs(made - answer))}.`;
  const factor = Math.max(made / answer, answer / made);
  if (factor > within) return `Too ${made > answer ? "high" : "low"} by a factor of ${figures(factor)}.`;
  return `Close: ${figures(made / answer)} times that.`;
}


export function prediction(panel, data, kept) {
  const box = element("div", { className: "av-asking" });
  const shown = element("div", { className: "av-shown", tabIndex: -1, attributes: { role: "status" } });
  panel.append(element("p", { innerHTML: `<b>Prediction.</b> ${data.question}` }), box, shown);
  const made = kept.read();
  if (made === null) FORMS[data.form](box, data, lock);
  else show(made);

  function lock(value) {
    kept.write(value);
    box.replaceChildren();
    show(value);
    shown.focus(); // so that Tab goes on from here
  }

  function show(value) {
    const said = `<p>You said <b>${safe(written(data, value))}</b>. It is ` +
      `<b>${safe(written(data, data.answer))}</b>. ${safe(judged(data, value))}</p>`;
    const picture = element("div");
    if (data.form === "drawn") bars(picture, data, value, null);
    shown.innerHTML = data.form === "drawn" ? `<p>${safe(judged(data, value))}</p>` : said;
    shown.append(picture, element("div", { innerHTML: data.because }));
  }
}

const FORMS = {
  number(box, { unit }, lock) {
    const field = quiet(element("input", { type: "text", size: 12, autocomplete: "off" }));
    field.dataset.control = "typed";
    const wrong = element("span", { className: "av-wrong", attributes: { role: "alert" } });
    const take = () => {
      const value = typed(field.value, unit);
      if (Number.isNaN(value)) wrong.textContent = NO_NUMBER;
      else lock(value);
    };
    field.onkeydown = (event) => {
      if (event.key === "Enter") take();
    };
    box.append(element("label", {}, ["Your number ", field, ` ${unit} `]),
      pressButton("lock", "Lock it in", "Show the answer", take), wrong);
  },

  choice(box, { choices }, lock) {
    choices.forEach((each, i) => box.append(pressButton(`choice ${i}`, each, "", () => lock(each))));
    box.classList.add("av-choices");
  },

  // Pressed one after the other; a second press takes one back, and the last place is implied.
  order(box, { choices }, lock) {
    const picked = [], hint = element("p", { className: "av-note",
      textContent: "Press them in order; press again to take one back." });
    const buttons = choices.map((each, i) => pressButton(`choice ${i}`, each, "", () => {
      if (picked.includes(each)) picked.splice(picked.indexOf(each), 1);
      else picked.push(each);
      const left = choices.filter((one) => !picked.includes(one));
      if (left.length <= 1) return lock([...picked, ...left]);
      choices.forEach((one, k) => {
        const place = picked.indexOf(one);
        buttons[k].textContent = place < 0 ? one : `${place + 1}. ${one}`;
      });
    }));
    box.append(hint, ...buttons);
    box.classList.add("av-choices");
  },

  drawn(box, data, lock) {
    const canvas = element("div"), values = data.answer.map(() => 0);
    box.append(element("p", { className: "av-note", textContent: `Draw with the pointer, or with ` +
      `the arrow keys: left and right choose the ${data.bar}, up and down its height.` }), canvas,
    pressButton("lock", "Lock it in", "Show the answer", () => lock(values)));
    bars(canvas, data, values, (place, value) => (values[place] = value));
  },
};
