(() => {
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);
  const every = (selector, within = document) => [...within.querySelectorAll(selector)];
  sortable(document);
  copyable(document);
  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    Object.assign(made, attributes);
    made.append(...children);
    return made;
  };

  // A link opens the part that it leads to; what stands behind a ? chooses samples.
  const part = () => {
    const [id, chosen] = location.hash.slice(1).split("?");
    const target = at(id);
    document.querySelector("main > .problem.lost")?.remove();
    if (id && !target) document.querySelector("main").prepend(element("p", { className: "problem lost" }, `This report has no part ${id}.`));
    if (target instanceof HTMLDetailsElement) target.open = true;
    if (id === "samples" && chosen !== undefined) select(new URLSearchParams(chosen));
    target?.scrollIntoView();
  };
  addEventListener("hashchange", part);
  document.addEventListener("click", (event) => { if (event.target.closest("a[href^='#']")?.getAttribute("href") === location.hash) part(); });

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
    flipsOfChosen();
    show(0);
  };
  // Pairs of which one run is hidden are no choice.
  const flipsOfChosen = () => {
    const select = at("flips");
    for (const option of rows ? [...select.options].slice(1) : []) {
      const { right, wrong } = rows.flips[Number(option.value)];
      option.hidden = option.disabled = ![right, wrong].every((run) => chosen.run.has(String(run)));
      if (option.hidden && option.selected) select.value = "";
    }
    select.hidden = ![...select.options].slice(1).some((option) => !option.hidden);
  };
  at("picker").addEventListener("change", choose);
  at("picker").addEventListener("click", (event) => {
    const { all, none } = event.target.dataset;
    if (!all && !none) return;
    for (const box of every(`#picker input[name=${all ?? none}]`)) box.checked = Boolean(all);
    choose();
  });

  // Paper cannot be clicked: with the appendix everything is open on it.
  const opened = [];
  addEventListener("beforeprint", () => {
    if (!at("appendix").checked) return;
    for (const details of every("main details:not([open])")) {
      details.open = true;
      opened.push(details);
    }
  });
  addEventListener("afterprint", () => { for (const details of opened.splice(0)) details.open = false; });

  // Samples: columns and texts are unpacked once, lists are drawn a page at a time.
  const PAGE = 50;
  // Characters of a text in the list.
  const LONGEST = 240;
  let rows = null;
  let texts = null;
  let found = [];
  let first = 0;
  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(at(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    // Characters that turn the direction of the text would turn the words around it, too.
    return JSON.parse((await new Response(stream).text()).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd"));
  };
  // What is searched for, whatever its case; none for nothing.
  const searched = () => {
    const words = at("search").value.trim();
    return words ? new RegExp(words.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu") : null;
  };
  const marked = (text, words) => {
    const hit = words?.exec(text);
    if (!hit) return [text];
    const end = hit.index + hit[0].length;
    return [text.slice(0, hit.index), element("mark", {}, hit[0]), text.slice(end)];
  };
  const counted = (number) => number.toLocaleString("en");
  const chosenValue = (id) => at(id)?.value ?? "";
  // Rows that answered an item differently than the row at hand did, where flips are listed.
  let other = new Map();
  const search = () => {
    if (!rows) return;
    const words = searched();
    const flips = rows.flips[Number(chosenValue("flips") || -1)];
    for (const id of ["run", "outcome", "by"]) if (at(id)) at(id).disabled = flips !== undefined;
    other = new Map(flips?.rows);
    const has = (i) => [rows.items.words[rows.item[i]], texts.question[rows.item[i]], texts.gold[rows.item[i]], texts.completion[i]].some((text) => words.test(text));
    if (flips) {
      const [task, length] = [chosenValue("task"), chosenValue("length")];
      const is = (i) => chosen.run.has(String(rows.run[i])) && chosen.task.has(rows.tasks.words[rows.task[i]]);
      const of = (i) => (task === "" || rows.task[i] === Number(task)) && (length === "" || rows.covariate[i] === Number(length));
      found = flips.rows.filter(([i, j]) => is(i) && chosen.run.has(String(rows.run[j])) && of(i) && (!words || has(i) || has(j))).map(([i]) => i);
      return;
    }
    const [run, task, length, outcome] = ["run", "task", "length", "outcome"].map(chosenValue);
    const wanted = (i) => {
      if (!chosen.run.has(String(rows.run[i])) || !chosen.task.has(rows.tasks.words[rows.task[i]])) return false;
      if (run !== "" && rows.run[i] !== Number(run)) return false;
      if (task !== "" && rows.task[i] !== Number(task)) return false;
      if (length !== "" && rows.covariate[i] !== Number(length)) return false;
      if (outcome === "wrong" && rows.outcome[i] === 0) return false;
      if (outcome !== "" && outcome !== "wrong" && rows.outcome[i] !== Number(outcome)) return false;
      return !words || has(i);
    };
    found = rows.run.map((_, i) => i).filter(wanted);
    const by = at("by").value;
    if (by !== "item") found.sort((a, b) => rows[by][b] - rows[by][a] || a - b);
  };
  const badge = (i) => element("span", { className: `badge ${rows.outcome[i] === 0 ? "good" : "bad"}` }, rows.outcomes.words[rows.outcome[i]]);
  const name = (i) => `${rows.items.words[rows.item[i]]}${rows.sample[i] ? ` \u00b7 ${rows.sample[i]}` : ""}`;
  const is_stored = (i) => texts.completion[i] !== "" || rows.tokens[i] === 0;
  const read = (i) => texts.extracted[i] ?? (is_stored(i) ? "nothing" : "not stored");
  const id = (i) => `${rows.items.words[rows.item[i]]}${rows.sample[i] ? `~${rows.sample[i]}` : ""}`;
  const label = (i) => (rows.runs.length > 1 ? [element("span", { className: `swatch s${rows.run[i] % Number(root.dataset.styles)}`, title: rows.runs[rows.run[i]] })] : []);
  // Characters of a text, with those that were left out of the report.
  const characters = (text) => {
    const cut = /\n\[\u2026 (\d+) characters left out[^\n]*\]\n/u.exec(text);
    return [...text].length + (cut ? Number(cut[1]) - [...cut[0]].length : 0);
  };
  // An answer in its parts: thinking is folded, what a scorer read is marked.
  const answer = (i, words) => {
    const text = texts.completion[i];
    // Files of outcomes have no texts.
    if (!is_stored(i)) return element("pre", { className: "completion dim" }, "(not stored)");
    const parts = [];
    const lengths = rows.parts[i].length ? rows.parts[i] : [text.length, 0];
    for (let part = 0, from = 0; part < lengths.length; part += 2) {
      const piece = text.slice(from, from += lengths[part]);
      const kind = rows.marks.words[lengths[part + 1]];
      if (kind === "") parts.push(...marked(piece, words));
      else if (lengths[part + 1] === 1) parts.push(element("details", { className: "thinking", open: Boolean(words?.test(piece)) }, element("summary", {}, `thinking, ${counted(characters(piece))} characters`), ...marked(piece, words)));
      else parts.push(element("mark", { title: `read by ${kind}` }, piece, element("sup", {}, kind)));
    }
    return element("pre", { className: "completion", dir: "auto" }, ...parts);
  };
  const block = (title, text, words) => [element("h2", {}, title), element("pre", { dir: "auto" }, ...marked(text, words))];
  const question = (i, words) => block("Question", texts.question[rows.item[i]] || "(the question can not be had without the suite's data)", words);
  // A sample as the viewer shows it.
  const sample = (i, words) => {
    const item = rows.item[i];
    const score = (bit) => {
      const scorer = rows.scorers.words[bit];
      const right = Math.floor(rows.matched[i] / 2 ** bit) % 2 === 1;
      const decides = rows.decide[rows.run[i]].includes(bit) ? [" ", element("small", {}, "decides")] : [];
      return element("tr", {}, element("th", { scope: "row" }, scorer, ...decides), element("td", {}, element("span", { className: `badge ${right ? "good" : "bad"}` }, right ? "right" : "wrong")));
    };
    const scorers = rows.scored[rows.run[i]].map(score);
    const facts = [["run", rows.runs[rows.run[i]]], ["task", rows.task_labels[rows.task[i]]], ...(rows.tokens[i] > 0 ? [["tokens", rows.tokens[i]]] : [])];
    if (rows.covariate[i] >= 0) facts.push(rows.covariates.words[rows.covariate[i]].split(/=(.*)/s).slice(0, 2));
    if (rows.ms[i] > 0) facts.push(["milliseconds", rows.ms[i]]);
    if (rows.truncated[i]) facts.push(["end", "cut off by the token budget"]);
    return element("article", { className: "sample" },
      element("h1", { className: "item" }, badge(i), ` ${name(i)}`),
      ...question(i, words),
      element("div", { className: "answers" }, element("div", {}, ...block("Expected", texts.gold[item] || "(not stored)", words)), element("div", {}, ...block("Read", texts.extracted[i] ?? `(${read(i)})`, words))),
      element("h2", {}, rows.ms[i] < 0 ? "No answer" : "Answer"), answer(i, words),
      ...(scorers.length ? [element("table", {}, element("tbody", {}, ...scorers))] : []),
      element("dl", { className: "facts" }, ...facts.flatMap(([fact, value]) => [element("dt", {}, fact), element("dd", {}, String(value))])));
  };
  // Two runs' answers to one item, side by side, as the viewer shows them.
  const pair = (both, words) => {
    const share = (i) => {
      const mine = rows.run.flatMap((run, other) => (run === rows.run[i] && rows.item[other] === rows.item[i] ? [rows.outcome[other] === 0] : []));
      return mine.length > 1 ? [" ", element("small", {}, `${mine.filter(Boolean).length} of ${mine.length} right, sample ${rows.sample[i]}`)] : [];
    };
    const side = (i) => element("section", {}, element("h2", {}, ...label(i), `${rows.runs[rows.run[i]]} `, badge(i), ...share(i)), element("p", { className: "dim" }, `read: ${read(i)}`), answer(i, words));
    const differ = texts.question[rows.item[both[0]]] !== texts.question[rows.item[both[1]]] ? [element("p", { className: "problem" }, `another question: ${texts.question[rows.item[both[1]]]}`)] : [];
    return element("article", { className: "sample" }, element("h1", { className: "item" }, name(both[0])), ...question(both[0], words), ...block("Expected", texts.gold[rows.item[both[0]]] || "(not stored)", words), ...differ, element("div", { className: "answers" }, ...both.map(side)));
  };
  const detail = at("detail");
  const nothing = [...detail.childNodes];
  // The choice is in the address, so that a link to it can be sent.
  const parameters = () => {
    const flips = rows.flips[Number(chosenValue("flips") || -1)];
    const words = { right: flips && String(flips.right), wrong: flips && String(flips.wrong), run: !flips && at("run")?.value, task: chosenValue("task") && rows.tasks.words[chosenValue("task")], covariate: chosenValue("length") && rows.covariates.words[chosenValue("length")],
      outcome: !flips && chosenValue("outcome") && (rows.outcomes.words[chosenValue("outcome")] ?? "wrong"), q: at("search").value.trim() };
    return new URLSearchParams(Object.entries(words).filter(([, value]) => value));
  };
  const walk = walking({
    list: at("list"),
    detail,
    address: (line) => {
      // A sample of several runs is one of its run.
      const of = rows.runs.length > 1 && !other.size && !parameters().has("run") ? [["of", rows.run[line.dataset.index]]] : [];
      return `samples?${new URLSearchParams([...parameters(), ["item", line.dataset.id], ...of])}`;
    },
    show: (line) => {
      const [i, words] = [Number(line.dataset.index), searched()];
      return other.has(i) ? pair([i, other.get(i)], words) : sample(i, words);
    },
  });
  // Of a question what other questions of its task do not have; of a long one the end, where what is asked stands.
  const varying = (i) => {
    const text = texts.question[rows.item[i]].trim().replace(/\s+/g, " ");
    const [start, end] = rows.shared[rows.task[i]];
    const kept = text.slice(start, text.length - end).trim();
    const from = Math.max(0, kept.length - LONGEST);
    return `${start || from ? "\u2026 " : ""}${kept.slice(from)}${end ? " \u2026" : ""}`;
  };
  // The beginning of an answer, of which thinking is no part unless it is all.
  const said = (i, words) => {
    const [text, parts] = [texts.completion[i], rows.parts[i]];
    let visible = "";
    for (let part = 0, from = 0; part < parts.length; part += 2) {
      const piece = text.slice(from, from += parts[part]);
      if (parts[part + 1] !== 1) visible += piece;
    }
    return marked((visible.trim() ? visible : text).slice(0, LONGEST), words);
  };
  const draw = () => {
    if (!rows) return;
    const words = searched();
    const [of, what] = other.size ? [other.size, "items"] : [rows.run.length, "samples"];
    at("count").textContent = `${counted(found.length)} of ${counted(of)} ${what}`;
    const lines = found.slice(first, first + PAGE).map((i) => {
      const item = rows.item[i];
      const line = element("a", { className: "line", role: "button", tabIndex: 0, onkeydown: (event) => { if (event.key === "Enter") line.click(); } },
        element("span", { className: "head" }, ...(other.has(i) ? [] : [...label(i), badge(i), " "]), element("small", {}, name(i))),
        element("span", { className: "question", dir: "auto" }, ...marked(varying(i) || rows.items.words[item], words)),
        ...(other.has(i)
          ? [element("span", { className: "answer" }, element("b", {}, texts.gold[item])), element("span", { className: "both" }, ...[i, other.get(i)].map((one) => element("span", { className: "answer" }, ...label(one), ...said(one, words))))]
          : [element("span", { className: "answer" }, element("b", {}, texts.gold[item]), " \u00b7 ", ...said(i, words))]));
      line.dataset.index = i;
      line.dataset.id = id(i);
      return line;
    });
    // Where it stood in the list, it would go with it.
    at("list").parentNode.after(detail);
    detail.replaceChildren(...nothing);
    at("list").replaceChildren(...(lines.length ? lines : [element("p", {}, "No sample matches.")]));
    walk.read();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    at("page").textContent = `page ${Math.floor(first / PAGE) + 1} of ${pages}`;
    at("back").disabled = first === 0;
    at("next").disabled = first + PAGE >= found.length;
  };
  const show = (from) => { first = from; at("missing").textContent = ""; search(); draw(); };
  // Chooses samples by the words of an address, and says which of these are not here.
  let asked = null;
  const select = (words) => {
    if (!rows) { asked = words; return; }
    const known = ["right", "wrong", "run", "task", "covariate", "outcome", "q", "item", "of"];
    const missing = [...words.keys()].filter((name) => !known.includes(name)).map((name) => `${name} ${words.get(name)}`);
    const index = (list, name) => {
      const word = words.get(name);
      const found = word === null ? -1 : list.indexOf(word);
      if (word !== null && found < 0) missing.push(`${name} ${word}`);
      return found < 0 ? "" : String(found);
    };
    const [right, wrong] = [words.get("right"), words.get("wrong")];
    const flips = rows.flips.findIndex((flips) => String(flips.right) === right && String(flips.wrong) === wrong);
    if (flips < 0 && (right !== null || wrong !== null)) missing.push(`right in ${right} and wrong in ${wrong}`);
    at("flips").value = flips < 0 ? "" : String(flips);
    for (const name of ["run", "outcome"]) if (flips >= 0 && words.has(name)) { missing.push(`${name} ${words.get(name)}`); words.delete(name); }
    if (at("run")) at("run").value = index(rows.runs.map((_, index) => String(index)), "run");
    at("task").value = index(rows.tasks.words, "task");
    at("length").value = index(rows.covariates.words, "covariate");
    at("outcome").value = words.get("outcome") === "wrong" ? "wrong" : index(rows.outcomes.words, "outcome");
    at("search").value = words.get("q") ?? "";
    show(0);
    const item = words.get("item");
    const is_of = (i) => !words.has("of") || String(rows.run[i]) === words.get("of");
    const place = item === null ? 0 : found.findIndex((i) => id(i) === item && is_of(i));
    if (place < 0) missing.push(`item ${item}`);
    if (place > 0) { first = place - (place % PAGE); draw(); }
    at("missing").textContent = missing.length ? `Not here, and so not chosen: ${missing.join(", ")}.` : "";
    const shows = place >= 0 && (item !== null || walk.beside());
    if (shows) walk.choose(place - first, false);
    (shows && !walk.beside() ? walk.lines()[place - first] : at("samples")).scrollIntoView();
  };
  let waiting = 0;
  at("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => show(0), 200); });
  at("browser").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["run", "flips", "task", "length", "outcome", "by"]) at(id)?.addEventListener("change", () => { show(0); if (walk.beside()) walk.choose(0, false); });
  at("back").addEventListener("click", () => { first = Math.max(0, first - PAGE); draw(); });
  const next = () => { if (first + PAGE < found.length) { first += PAGE; draw(); return true; } return false; };
  at("next").addEventListener("click", next);
  onKeys({
    j: () => { if (at("samples").open && !walk.next() && next()) walk.choose(0); },
    k: () => { if (at("samples").open) walk.previous(); },
    "/": () => { at("samples").open = true; at("search").focus(); },
    "?": () => at("help").showModal(),
  });

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
    at("outcome").append(option("", "every outcome"), option("wrong", `wrong or no answer (${counted(rows.run.length - counts[0])})`),
      ...rows.outcomes.words.map((word, index) => option(String(index), `${word} (${counted(counts[index])})`)));
    at("flips").append(...rows.flips.map((flips, index) => option(String(index), `${counted(flips.rows.length)}: ${rows.runs[flips.right]} ${flips.more ?? "right,"} ${rows.runs[flips.wrong]}${flips.more ? "" : " wrong"}`)));
    flipsOfChosen();
    at("task").append(...rows.task_labels.map((label, index) => option(String(index), label)));
    at("length").append(...rows.covariates.words.map((word, index) => option(String(index), word.replace("=", " "))));
    at("task").hidden = rows.tasks.words.length < 2;
    at("length").hidden = rows.covariates.words.length < 2;
    if (asked) select(asked);
    else { show(0); if (walk.beside()) walk.choose(0, false); }
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
