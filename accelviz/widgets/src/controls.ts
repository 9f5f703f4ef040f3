// The controls: menus, sliders with a field for the number, buttons. Each has a name of its own for
// those who cannot see it, takes the keys, and leaves Tab alone.

import { ruled } from "./numbers";

export function element(tag, properties = {}, children = []) {
  const { dataset, attributes, style, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, dataset ?? {});
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  Object.assign(made.style, style ?? {});
  made.append(...children);
  return made;
}

// JupyterLab has keys of its own, unless the element that has the focus says otherwise.
export function quiet(focusable) {
  focusable.dataset.lmSuppressShortcuts = "true";
  return focusable;
}

// What stands at the pointer for some, others are told.
const describe = (parts, title) => title &&
  parts.forEach((each) => each.setAttribute("aria-description", title));

const RULE = "By rule: the strategy chooses it from the graph and the number of columns.";

export function menuControl(name, label, title, act) {
  const select = quiet(element("select", { dataset: { control: name } }));
  select.onchange = () => act(select.value);
  let there = "";
  describe([select], title);
  const box = element("label", { className: "av-control av-menu" },
    [element("span", { textContent: label, title }), select]);
  return {
    box,
    update(values, value, names = values) {
      const all = [...values, ...names].join("\n");
      if (there !== all) {
        there = all;
        select.replaceChildren(...values.map((each, i) =>
          element("option", { value: each, textContent: names[i] })));
      }
      select.value = value;
    },
  };
}

// A slider over some values, in order. Where they are numbers there is a field beside it, which
// takes any of them (the nearest, of what is typed).
export function sliderControl(name, label, title, act) {
  const range = quiet(element("input", { type: "range", min: 0, step: 1 }));
  range.dataset.control = name;
  const field = quiet(element("input", { type: "number", className: "av-field" }));
  const output = element("output");
  const box = element("div", { className: "av-control av-slider" }, [
    element("span", { textContent: label, title }), range, field, output]);
  let values = [], place = -1, chosen = null;
  range.setAttribute("aria-label", label);
  field.setAttribute("aria-label", `${label}, as a number`);
  describe([range, field], title);
  range.oninput = () => act(values[Number(range.value)]);
  const typed = () => {
    if (field.value === "" || !Number.isFinite(Number(field.value))) return show();
    const wanted = Number(field.value);
    const numbers = values.filter((each) => typeof each === "number");
    act(numbers.reduce((best, each) =>
      Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best));
    show();
  };
  field.onchange = typed;
  field.onkeydown = (event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter") typed();
    if (!step) return;
    event.preventDefault(); // to the next value there is, not to the next number
    // Kept at once: the next key may come before the page is drawn again.
    place = Math.max(0, Math.min(values.length - 1, place + step));
    act(values[place]);
  };
  function show() {
    const value = values[place];
    range.value = place;
    range.setAttribute("aria-valuetext", ruled(value, chosen));
    const number = typeof value === "number";
    field.hidden = !number;
    output.hidden = number;
    if (number) field.value = value;
    output.textContent = ruled(value, chosen);
    output.title = value === null ? RULE : "";
  }
  return {
    box,
    update(offered, value, byRule = null) {
      values = offered;
      chosen = byRule;
      place = offered.indexOf(value);
      range.max = values.length - 1;
      const numbers = values.filter((each) => typeof each === "number");
      if (numbers.length) [field.min, field.max] = [numbers[0], numbers.at(-1)];
      show();
    },
  };
}

// A slider over 0 to `last` with a field for the number.
export function stepsControl(name, label, title, act) {
  const range = quiet(element("input", { type: "range", min: 0, step: 1 }));
  const field = quiet(element("input", { type: "number", min: 0, className: "av-field" }));
  range.dataset.control = name;
  range.setAttribute("aria-label", label);
  field.setAttribute("aria-label", `${label}, as a number`);
  describe([range, field], title);
  const box = element("div", { className: "av-control av-steps" }, [
    element("span", { textContent: label, title }), range, field]);
  let last = 0, typing = false;
  const choose = (value) => act(Math.max(0, Math.min(last, Math.round(value))));
  range.oninput = () => choose(Number(range.value));
  // Handlers in braces: one that returns false would keep the key from the browser, Tab included.
  const typed = () => {
    typing = false;
    if (field.value !== "") choose(Number(field.value));
  };
  field.oninput = () => {
    typing = true; // a repaint meanwhile leaves the digits alone
  };
  field.onblur = () => {
    typing = false;
  };
  field.onchange = typed;
  field.onkeydown = (event) => {
    if (event.key === "Enter") typed();
  };
  return {
    box,
    update(end, value) {
      last = end;
      range.max = field.max = end;
      range.disabled = field.disabled = end <= 0;
      range.value = value;
      if (!typing) field.value = value;
    },
  };
}

export function pressButton(name, label, title, act) {
  const press = quiet(element("button", { type: "button", textContent: label, title }));
  press.dataset.control = name;
  press.onclick = act;
  return press;
}
