(() => {
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);
  const every = (selector, within = document) => [...within.querySelectorAll(selector)];

  at("keys").hidden = false;
  at("keys").addEventListener("click", () => at("help").showModal());

  // Tables as text. Columns with `data-skip` are pictures and links.
  const cells = (table) => every("tr", table).map((row) => {
    const heads = every("thead th", table);
    let column = 0;
    return [...row.children].flatMap((cell) => {
      const skip = cell.dataset.skip !== undefined || heads[column]?.dataset.skip !== undefined;
      column += cell.colSpan;
      return skip ? [] : [cell.innerText.replace(/\s+/g, " ").trim()];
    });
  });
  const copy = async (button) => {
    const holder = button.closest(".copies");
    const table = holder.previousElementSibling.matches("table") ? holder.previousElementSibling : holder.previousElementSibling.querySelector("table");
    const text = `${formats[button.dataset.copy](cells(table))}\n`;
    root.dataset.copied = text;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const word = button.textContent;
    button.textContent = "copied";
    setTimeout(() => { button.textContent = word; }, 1200);
  };

  const prepare = (within) => {
    for (const copies of every(".copies", within)) copies.hidden = false;
    for (const button of every("[data-copy]", within)) button.addEventListener("click", () => copy(button));
    sortable(within);
  };
  prepare(document);

  // Parts that take longer come when they are asked for, in place.
  for (const link of every("a.fetch")) {
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const title = link.textContent;
      link.textContent = "computing …";
      const reply = await fetch(link.href);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const part = page.querySelector(".part") ?? page.querySelector("main");
      const heading = document.createElement("h3");
      heading.textContent = title;
      link.parentNode.replaceWith(heading, part);
      prepare(part);
    });
  }

  // A run that works.
  const live = at("live");
  const percent = (value) => (100 * value).toFixed(1);
  const watch = async () => {
    const reply = await fetch(live.dataset.progress).then((found) => (found.ok ? found.json() : null), () => null);
    if (reply) {
      const of = reply.planned ? ` of ${reply.planned}` : "";
      const accuracy = reply.accuracy === null ? "" : `, ${percent(reply.accuracy)} % right [${percent(reply.low)}, ${percent(reply.high)}]`;
      at("progress").textContent = `${reply.recorded}${of} samples${accuracy}`;
      at("bar").value = reply.planned ? reply.recorded / reply.planned : 0;
      if (reply.status !== "working") { location.reload(); return; }
    }
    setTimeout(watch, 2000);
  };
  if (live) watch();
  if (every("[data-working]").length > 0) setTimeout(() => location.reload(), 15000);

  // Two runs that are chosen for a comparison: the second one is beside the first.
  const compare = at("compare");
  const picks = every("input.pick");
  if (compare && picks.length > 1) {
    compare.hidden = false;
    let chosenRuns = [];
    const show = () => {
      compare.disabled = chosenRuns.length !== 2;
      for (const pick of picks) pick.checked = chosenRuns.includes(pick.value);
    };
    for (const pick of picks) {
      pick.addEventListener("change", () => {
        chosenRuns = chosenRuns.filter((run) => run !== pick.value);
        if (pick.checked) chosenRuns = [...chosenRuns, pick.value].slice(-2);
        show();
      });
    }
    compare.addEventListener("click", () => { location.href = `${compare.dataset.compare}?${new URLSearchParams({ a: chosenRuns[0], b: chosenRuns[1] })}`; });
    show();
  }

  // Samples: the list stays, the chosen one is beside it.
  const lines = every(".line");
  const detail = at("detail");
  let open = -1;
  let wanted = 0;
  const choose = async (index, scroll = true) => {
    if (index < 0 || index >= lines.length) return;
    lines[open]?.classList.remove("open");
    open = index;
    const line = lines[open];
    line.classList.add("open");
    if (scroll) line.scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", `#${encodeURIComponent(line.dataset.id)}`);
    wanted += 1;
    const mine = wanted;
    const reply = await fetch(`${line.href}&bare=true`);
    const text = await reply.text();
    // A later choice may have been answered already.
    if (mine !== wanted) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    detail.replaceChildren(page.querySelector("article") ?? page.querySelector("main"));
    detail.scrollTop = 0;
    prepare(detail);
  };
  const beside = () => detail && getComputedStyle(detail).position === "sticky";
  lines.forEach((line, index) => line.addEventListener("click", (event) => {
    if (!beside() || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(index, false);
  }));
  // The chosen sample is in the address by its id, which may not be one of this list.
  const chosen = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } };
  const asked = chosen();
  const place = lines.findIndex((line) => line.dataset.id === asked);
  if (lines.length > 0 && beside()) choose(Math.max(place, 0), place >= 0);
  if (detail && asked && place < 0 && !at(asked)) {
    const note = document.createElement("p");
    note.className = "problem";
    note.textContent = `${asked} is not on this page of the list.`;
    detail.parentNode.before(note);
  }
  // A number that takes reading the whole run comes by itself.
  const count = at("count");
  if (count?.dataset.count) {
    fetch(count.dataset.count).then((reply) => (reply.ok ? reply.json() : null), () => null).then((found) => { count.textContent = found ? `${found.text} samples` : ""; });
  }
  for (const select of every("#filters select")) select.addEventListener("change", () => at("filters").requestSubmit());
  // Empty fields would only make addresses long.
  at("filters")?.addEventListener("formdata", (event) => { for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) { if (event.key === "Escape") event.target.blur(); return; }
    const go = (element) => { if (element) location.href = element.href; };
    const keys = {
      j: () => (open + 1 < lines.length ? choose(open + 1) : go(at("next"))),
      k: () => choose(open - 1),
      n: () => go(at("next")),
      u: () => go(document.querySelector("[data-up]") ?? document.querySelector("header .home")),
      t: () => { const all = every(".thinking"); const closed = all.some((one) => !one.open); for (const one of all) one.open = closed; },
      "/": () => at("search")?.focus(),
      "?": () => at("help").showModal(),
      Enter: () => { if (open >= 0 && event.target === document.body) go(lines[open]); },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  root.dataset.ready = "true";
})();
