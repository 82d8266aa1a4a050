(() => {
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);
  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("js");

  sortable(document);

  // A link opens the part that it leads to.
  const part = () => { const target = at(location.hash.slice(1)); if (target instanceof HTMLDetailsElement) target.open = true; target?.scrollIntoView(); };
  addEventListener("hashchange", part);
  for (const link of every("nav a")) link.addEventListener("click", () => { if (link.hash === location.hash) part(); });

  // The picker: what is not chosen is hidden everywhere. Rows like "mul_1, b > 1" or "gsm base" belong
  // to the task at their beginning; those of no task, like "all", stay.
  const chosen = { run: new Set(every("#picker input[name=run]").map((box) => box.value)), task: new Set(every("#picker input[name=task]").map((box) => box.value)) };
  const every_task = new Set(every("#picker input[name=task]").map((box) => box.value));
  const choose = () => {
    for (const kind of ["run", "task"]) chosen[kind] = new Set(every(`#picker input[name=${kind}]:checked`).map((box) => box.value));
    const task = (name) => [name, name.split(",")[0], name.split(" ")[0]].find((one) => every_task.has(one));
    // A paper's figures have series of their own, and rows that are called like a model or end with its name.
    const hidden = every("#picker input[name=run]:not(:checked)").map((box) => box.dataset.label);
    for (const element of every("[data-apart] [data-task]")) {
      const { task: name } = element.dataset;
      element.style.display = hidden.some((label) => name === label || name.endsWith(` ${label}`)) ? "none" : "";
    }
    for (const element of every("main [data-task], main [data-run], .legend [data-run], main [data-series]")) {
      if (element.closest("[data-apart]")) continue;
      const { task: name, run, series } = element.dataset;
      const run_hidden = (run ?? series) !== undefined && !chosen.run.has(run ?? series);
      const of_task = name === undefined ? undefined : task(name);
      const task_hidden = of_task !== undefined && !chosen.task.has(of_task);
      if (element instanceof SVGElement) element.style.display = run_hidden || task_hidden ? "none" : "";
      else element.hidden = run_hidden || task_hidden;
    }
    show(0);
  };
  at("picker").addEventListener("change", choose);
  at("picker").addEventListener("click", (event) => {
    const { all, none } = event.target.dataset;
    if (!all && !none) return;
    for (const box of every(`#picker input[name=${all ?? none}]`)) box.checked = Boolean(all);
    choose();
  });

  // Paper cannot be clicked: with the appendix everything is open on it, but the list of samples stays as the reader left it.
  const opened = [];
  addEventListener("beforeprint", () => {
    if (!at("appendix").checked) return;
    for (const details of every("main details:not([open])")) {
      if (details.closest("#list")) continue;
      details.open = true;
      opened.push(details);
    }
  });
  addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });

  // Samples: columns and texts are unpacked once, lists are drawn a page at a time.
  const PAGE = 50;
  let rows = null;
  let texts = null;
  let found = [];
  let first = 0;
  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(at(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    Object.assign(made, attributes);
    made.append(...children);
    return made;
  };
  const marked = (text, words) => {
    const start = words ? text.toLowerCase().indexOf(words) : -1;
    if (start < 0) return [text];
    return [text.slice(0, start), element("mark", {}, text.slice(start, start + words.length)), text.slice(start + words.length)];
  };
  const block = (title, text, words) => [element("p", { className: "dim" }, title), element("pre", {}, ...marked(text, words))];
  const search = () => {
    if (!rows) return;
    const words = at("search").value.trim().toLowerCase();
    const outcome = at("outcome").value;
    const wanted = (i) => {
      if (!chosen.run.has(String(rows.run[i])) || !chosen.task.has(rows.tasks.words[rows.task[i]])) return false;
      if (outcome === "wrong" && rows.outcome[i] === 0) return false;
      if (outcome !== "" && outcome !== "wrong" && rows.outcome[i] !== Number(outcome)) return false;
      if (!words) return true;
      const item = rows.item[i];
      return [rows.items.words[item], texts.question[item], texts.gold[item], texts.completion[i]].some((text) => text.toLowerCase().includes(words));
    };
    found = rows.run.map((_, i) => i).filter(wanted);
    const by = at("by").value;
    if (by !== "item") found.sort((a, b) => rows[by][b] - rows[by][a] || a - b);
  };
  const detail = (i, words) => {
    const item = rows.item[i];
    const passed = rows.scorers.words.filter((_, bit) => Math.floor(rows.matched[i] / 2 ** bit) % 2 === 1);
    const missed = rows.scorers.words.filter((name) => !passed.includes(name));
    const time = rows.ms[i] < 0 ? "" : ` · ${rows.ms[i]} ms`;
    return [
      ...block(rows.items.words[item], texts.question[item] || "(the question can not be had without the suite's data)", words),
      ...block("expected", texts.gold[item], words),
      ...block(rows.ms[i] < 0 ? "no answer" : "answered", texts.completion[i], words),
      element("p", { className: "dim" }, `extracted: ${texts.extracted[i] ?? "nothing"} · passed: ${passed.join(", ") || "none"} · missed: ${missed.join(", ") || "none"} · ${rows.tokens[i]} tokens${time}${rows.truncated[i] ? " · cut off" : ""}`),
    ];
  };
  const draw = () => {
    if (!rows) return;
    const words = at("search").value.trim().toLowerCase();
    at("count").textContent = `${found.length} of ${rows.run.length} samples`;
    const list = found.slice(first, first + PAGE).map((i) => {
      const outcome = rows.outcomes.words[rows.outcome[i]];
      const swatch = element("span", { className: `swatch s${rows.run[i] % Number(root.dataset.styles)}`, title: rows.runs[rows.run[i]] });
      const repeat = rows.sample[i] ? ` #${rows.sample[i]}` : "";
      const what = element("span", { className: "what" }, ...marked(texts.question[rows.item[i]] || rows.items.words[rows.item[i]], words), repeat);
      const summary = element("summary", {}, swatch, element("span", { className: "dim" }, rows.tasks.words[rows.task[i]]), what,
        element("span", { className: `badge ${rows.outcome[i] === 0 ? "good" : "bad"}` }, outcome));
      const details = element("details", {}, summary);
      details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(...detail(i, words)); });
      return details;
    });
    at("list").replaceChildren(...list);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    at("page").textContent = `page ${Math.floor(first / PAGE) + 1} of ${pages}`;
    at("back").disabled = first === 0;
    at("next").disabled = first + PAGE >= found.length;
  };
  const show = (from) => { first = from; search(); draw(); };
  let waiting = 0;
  at("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => show(0), 200); });
  at("browser").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["outcome", "by"]) at(id).addEventListener("change", () => show(0));
  at("back").addEventListener("click", () => { first = Math.max(0, first - PAGE); draw(); });
  at("next").addEventListener("click", () => { first += PAGE; draw(); });

  const start = async () => {
    if (typeof DecompressionStream === "undefined") {
      at("count").textContent = "this browser can not unpack the samples (DecompressionStream is missing); everything else works";
      return;
    }
    const [columns, stream] = [await unpack("rows"), await unpack("texts")];
    const lists = { question: [], gold: [], completion: [], extracted: [] };
    let next = 0;
    for (const item of columns.item) {
      if (item === lists.question.length) {
        lists.question.push(stream[next++]);
        lists.gold.push(stream[next++]);
      }
      lists.completion.push(stream[next++]);
      const extracted = stream[next++];
      lists.extracted.push(extracted === 1 ? lists.gold[item] : extracted);
    }
    [rows, texts] = [columns, lists];
    const counts = rows.outcomes.words.map(() => 0);
    for (const outcome of rows.outcome) counts[outcome] += 1;
    const option = (value, text) => element("option", { value }, text);
    at("outcome").append(option("", "every outcome"), option("wrong", `not correct (${rows.run.length - counts[0]})`),
      ...rows.outcomes.words.map((word, index) => option(String(index), `${word} (${counts[index]})`)));
    show(0);
    root.dataset.samples = "ready";
  };
  // Samples are unpacked when they are first looked at.
  let begun = false;
  const begin = () => {
    if (begun || !at("samples").open) return;
    begun = true;
    start().catch((error) => { at("count").textContent = `the samples could not be unpacked: ${error}`; console.error(error); });
  };
  at("samples").addEventListener("toggle", begin);
  if (location.hash) part();
  begin();
  root.dataset.ready = "true";
})();
