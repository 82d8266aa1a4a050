(() => {
  const root = document.documentElement;
  const at = (id) => document.getElementById(id);
  const every = (selector, within = document) => [...within.querySelectorAll(selector)];

  at("keys").hidden = false;
  at("keys").addEventListener("click", () => at("help").showModal());

  const prepare = (within) => { copyable(within); sortable(within); };
  prepare(document);

  // Parts that take longer come when they are asked for, in place.
  for (const link of every("a.fetch")) {
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const title = link.textContent;
      link.textContent = "computing …";
      const reply = await fetch(link.href);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const part = page.querySelector(".fetched") ?? page.querySelector("main");
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

  // Samples: the list stays, the chosen one is beside it, and in the address by its id, which may not be one of this list.
  const list = at("list");
  const walk = list && walking({
    list,
    detail: at("detail"),
    address: (line) => encodeURIComponent(line.dataset.id),
    show: async (line) => {
      const reply = await fetch(`${line.href}&bare=true`);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const shown = page.querySelector("article") ?? page.querySelector("main");
      prepare(shown);
      return shown;
    },
  });
  if (walk) {
    walk.read();
    const chosen = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } };
    const asked = chosen();
    const place = walk.lines().findIndex((line) => line.dataset.id === asked);
    const isElsewhere = asked && place < 0 && !at(asked);
    // A sample that stands elsewhere stays in the address.
    if (walk.beside() && !isElsewhere) walk.choose(Math.max(place, 0), place >= 0);
    if (isElsewhere) {
      const note = document.createElement("p");
      note.className = "problem";
      note.textContent = `${asked} is not on this page of the list. `;
      if (list.dataset.sample) {
        const [item, n] = asked.split(/~(?=\d+$)/);
        const link = document.createElement("a");
        link.href = `${list.dataset.sample}?${new URLSearchParams({ item, n: n ?? 0 })}`;
        link.textContent = "Open it by itself";
        note.append(link);
      }
      list.parentNode.before(note);
    }
  }
  // A number that takes reading the whole run comes by itself.
  const count = at("count");
  if (count?.dataset.count) {
    fetch(count.dataset.count).then((reply) => (reply.ok ? reply.json() : null), () => null).then((found) => { count.textContent = found ? `${found.text} samples` : ""; });
  }
  for (const select of every("#filters select")) select.addEventListener("change", () => at("filters").requestSubmit());
  // The chosen sample need not be among those of other filters.
  at("filters")?.addEventListener("submit", () => history.replaceState(null, "", location.pathname + location.search));
  // Empty fields would only make addresses long.
  at("filters")?.addEventListener("formdata", (event) => { for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name); });

  // The list from which a sample was opened, for its own page: j and k go on through it, and the way up leads to it with its filters.
  const kept = (value) => { try { if (value) sessionStorage.setItem("earnest-list", JSON.stringify(value)); return JSON.parse(sessionStorage.getItem("earnest-list")); } catch { return null; } };
  if (walk) addEventListener("pagehide", () => kept({ at: location.href.split("#")[0], next: at("next")?.href, lines: walk.lines().map((line) => [line.href, line.dataset.id]) }));
  const from = walk ? null : kept();
  // Token by token it is the same sample.
  const here = from ? from.lines.findIndex(([line]) => line === location.href.replace(/&(tokens|logprobs)=true/g, "")) : -1;
  const up = document.querySelector("[data-up]");
  if (here >= 0 && up) up.href = `${from.at}#${encodeURIComponent(from.lines[here][1])}`;
  const beside = (step) => {
    if (here < 0) return;
    const [line] = from.lines[here + step] ?? [here + step < 0 ? undefined : from.next];
    if (line) location.href = line;
  };

  const go = (element) => { if (element) location.href = element.href; };
  onKeys({
    j: () => { if (!walk) beside(1); else if (!walk.next()) go(at("next")); },
    k: () => { if (walk) walk.previous(); else beside(-1); },
    n: () => go(at("next")),
    u: () => go(up ?? document.querySelector("header .home")),
    t: () => { const all = every(".thinking"); const closed = all.some((one) => !one.open); for (const one of all) one.open = closed; },
    "/": () => at("search")?.focus(),
    "?": () => at("help").showModal(),
    Enter: () => go(walk?.opened()),
  });
  root.dataset.ready = "true";
})();
