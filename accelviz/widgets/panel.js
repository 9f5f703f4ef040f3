// The panel's front end: shows what Python says is to be seen, and asks Python for changes.
// At most one request is on its way; what is asked for meanwhile is put together and sent next.

// A request that is not answered after this many milliseconds is worth a word to the reader; one
// that is known to take long says so itself.
const PATIENCE = 4000;

const SILENT =
  "The kernel has not answered. It may be busy with another cell, or it was stopped: " +
  "then restart it and run this cell again.";
const GONE = "The kernel of this panel is gone. Restart it and run this cell again.";

function element(tag, properties = {}, children = []) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// JupyterLab has keys of its own, unless the element that has the focus says otherwise.
function quiet(focusable) {
  focusable.dataset.lmSuppressShortcuts = "true";
}

// What a slider says of its value: where there is none, the strategy has a rule.
const written = (value) => value ?? "by rule";

// A slider over some values, or, with a field for the number, over 0 to `last`.
function range(ask, name, shown, field) {
  const input = element("input", { type: "range", min: 0, step: 1 });
  let values = null;
  const show = (value) => (field ? (shown.value = value) : (shown.textContent = written(value)));
  input.oninput = () => {
    const value = values ? values[input.value] : Number(input.value);
    show(value);
    ask({ [name]: value });
  };
  const typed = () => ask({ [name]: Math.round(Number(shown.value)) });
  if (field) shown.onchange = typed;
  if (field) shown.onkeydown = (event) => event.key === "Enter" && typed();
  return {
    parts: [input, shown],
    update(control) {
      values = control.values;
      input.max = shown.max = values ? values.length - 1 : control.last;
      input.value = values ? Math.max(values.indexOf(control.value), 0) : control.value;
      input.disabled = shown.disabled = !control.enabled;
      show(control.value);
      input.setAttribute("aria-valuetext", written(control.value));
    },
  };
}

// One control; `ask` is called with a change of settings. `update` shows what Python says.
const CONTROLS = {
  slider: (ask, name) => range(ask, name, element("output"), false),
  steps: (ask, name) =>
    range(ask, name, element("input", { type: "number", min: 0, step: 1 }), true),
  menu(ask, name) {
    const select = element("select");
    select.onchange = () => ask({ [name]: select.value });
    return {
      parts: [select],
      update(control) {
        const there = [...select.options].map((option) => option.value);
        const option = (value) => element("option", { value, textContent: value });
        const same = JSON.stringify(there) === JSON.stringify(control.values);
        if (!same) select.replaceChildren(...control.values.map(option));
        select.value = control.value;
      },
    };
  },
  button(ask, name) {
    const press = element("button", { type: "button" });
    press.onclick = () => ask({ [name]: true });
    return {
      parts: [press],
      update(control) {
        press.textContent = control.label;
        press.disabled = !control.enabled;
      },
    };
  },
  field(ask, name) {
    const input = element("input", { type: "text", size: 12, autocomplete: "off" });
    const unit = element("span");
    const press = element("button", { type: "button" });
    press.onclick = () => ask({ [name]: input.value });
    input.onkeydown = (event) => {
      if (event.key === "Enter") press.onclick();
    };
    return {
      parts: [input, unit, press],
      update(control) {
        unit.textContent = control.unit;
        press.textContent = control.button;
      },
    };
  },
};

function render({ model, el }) {
  const title = element("div", { className: "ask-title" });
  const message = element("div", { className: "ask-message", hidden: true });
  message.setAttribute("role", "alert");
  const controls = element("div", { className: "ask-controls" });
  const views = element("div", { className: "ask-views" });
  const hint = element("div", { className: "ask-hint" });
  hint.setAttribute("aria-live", "polite");
  const all = { className: "ask-panel", tabIndex: -1 };
  const panel = element("div", all, [title, message, controls, views, hint]);
  el.append(panel);

  // --- asking -------------------------------------------------------------------------------
  let sent = 0; // number of the last request
  let answered = true;
  let waiting = null; // changes that wait for the answer
  let patience = null;

  function say(text, details = "") {
    message.replaceChildren(text);
    if (details) {
      const summary = element("summary", { textContent: "traceback" });
      const whole = element("pre", { textContent: details });
      message.append(element("details", {}, [summary, whole]));
    }
    message.hidden = !text;
  }

  function ask(change) {
    waiting = { ...waiting, ...change };
    if (answered) send();
  }

  function send() {
    sent += 1;
    answered = false;
    panel.classList.add("ask-busy");
    clearTimeout(patience);
    patience = setTimeout(() => say(SILENT), PATIENCE);
    try {
      // Without a kernel a message throws, where a change of the model would be lost in silence.
      model.send({});
      model.set("request", { number: `${id}:${sent}`, change: waiting });
      model.save_changes();
      waiting = null;
    } catch {
      gone();
    }
  }

  function rest() {
    clearTimeout(patience);
    answered = true;
    panel.classList.remove("ask-busy");
  }

  function gone() {
    rest(); // so that the next change tries again
    waiting = null;
    say(GONE);
  }

  // Several copies of a panel share one model: the number says whose request was answered.
  const id = Math.random().toString(36).slice(2, 8);

  // --- showing ------------------------------------------------------------------------------
  const known = new Map(); // name of a control or view to what shows it

  function showControl(control) {
    let there = known.get(`control ${control.name}`);
    if (!there) {
      there = CONTROLS[control.kind](ask, control.name);
      const name = element("span", { textContent: control.kind === "button" ? "" : control.label });
      const className = `ask-control ask-${control.kind}`;
      there.box = element("label", { className }, [name, ...there.parts]);
      there.parts[0].dataset.control = control.name;
      for (const each of there.parts) quiet(each);
      known.set(`control ${control.name}`, there);
    }
    there.box.title = control.title;
    there.box.style.gridColumn = `span ${control.width}`;
    there.update(control);
    return there.box;
  }

  // What there is to choose depends on the strategies; what stays keeps its place and the focus.
  function showControls(wanted) {
    const boxes = wanted.map(showControl);
    // What has the focus and goes leaves it to the panel, so that Tab goes on from there.
    if (!boxes.length && controls.contains(document.activeElement)) panel.focus();
    for (const box of [...controls.children]) if (!boxes.includes(box)) box.remove();
    boxes.forEach((box, i) => {
      if (controls.children[i] !== box) controls.insertBefore(box, controls.children[i]);
    });
  }

  function showView(view) {
    let there = known.get(`view ${view.name}`);
    if (!there) {
      there = { heading: element("h4"), body: element("div", { className: "ask-body" }) };
      there.box = element("section", {}, [there.heading, there.body]);
      there.box.dataset.view = view.name;
      there.box.style.gridColumn = `span ${view.width}`;
      known.set(`view ${view.name}`, there);
      views.append(there.box);
    }
    there.heading.textContent = view.title;
    if (there.html !== view.html) {
      // The focus stays on what has the same place in the new picture.
      const places = () => [...there.body.querySelectorAll("[tabindex]")];
      const focused = places().indexOf(document.activeElement);
      there.body.innerHTML = there.html = view.html;
      places().forEach(quiet);
      if (focused >= 0) places()[focused]?.focus();
    }
  }

  function show() {
    const page = model.get("page");
    const own = page.number === `${id}:${sent}`;
    const current = answered || own; // else a later answer is on its way, with later values
    title.innerHTML = page.title;
    for (const view of page.views) showView(view);
    if (current && !waiting) showControls(page.controls);
    if (own) rest();
    if (answered) say(page.message, page.details);
    if (own && waiting) send();
    panel.dataset.answered = answered && !waiting ? sent : "";
  }

  // --- pointing -----------------------------------------------------------------------------
  function point(event) {
    const target = event.target.closest?.("[data-key], [data-info]");
    for (const lit of views.querySelectorAll(".ask-lit")) lit.classList.remove("ask-lit");
    hint.textContent = target?.dataset.info ?? "";
    if (!target?.dataset.key) return;
    const key = CSS.escape(target.dataset.key);
    for (const same of views.querySelectorAll(`[data-key="${key}"]`)) same.classList.add("ask-lit");
  }

  function pick(event) {
    const target = event.target.closest?.("[data-pick], [data-scale]");
    if (!target) return;
    if (target.dataset.pick) return ask(JSON.parse(target.dataset.pick));
    const [name, first, end, last, step] = JSON.parse(target.dataset.scale);
    const box = target.getBoundingClientRect();
    const value = first + Math.floor(((event.clientX - box.left) / box.width) * (end - first));
    const drawn = value - ((value - first) % step); // where not all are, the one that is there
    ask({ [name]: Math.min(Math.max(drawn, first), last) });
  }

  views.addEventListener("pointerover", point);
  views.addEventListener("pointerleave", point);
  views.addEventListener("focusin", point);
  views.addEventListener("click", pick);
  views.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (!event.target.closest?.("[data-pick]")) return;
    event.preventDefault();
    pick(event);
  });

  model.on("change:page", show);
  model.on("comm_live_update", gone);
  // JupyterLab says of a kernel that is shut down only here.
  const changed = model.widget_manager?.context?.sessionContext?.kernelChanged;
  const lost = (_, kernels) => kernels.newValue || gone();
  changed?.connect(lost);
  show();
  return () => {
    clearTimeout(patience);
    changed?.disconnect(lost);
    model.off("change:page", show);
    model.off("comm_live_update", gone);
  };
}

export default { render };
