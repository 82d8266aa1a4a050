"use strict";
// The colours of the page: the reader's system decides until a choice is made. Storage may be closed to local files.
document.documentElement.classList.add("js");
(() => {
  const root = document.documentElement;
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("earnest-theme", value);
      return localStorage.getItem("earnest-theme");
    } catch { return null; }
  };
  const theme = stored();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    stored(root.dataset.theme);
  });
  // What is held below the header stands where it ends, however many lines it has.
  const header = document.querySelector("header");
  new ResizeObserver(() => root.style.setProperty("--header", `${header.offsetHeight}px`)).observe(header);
})();

// Tables: a click on a heading sorts, a second one turns the order; the total stays last, and what has no number before it.
const sortable = (within) => {
  for (const heading of within.querySelectorAll(".sortable thead th:not([data-skip])")) {
    heading.tabIndex = 0;
    heading.setAttribute("role", "button");
    const sort = () => {
      const table = heading.closest("table");
      const column = [...heading.parentNode.children].indexOf(heading);
      const numeric = heading.classList.contains("num");
      const up = heading.getAttribute("aria-sort") === (numeric ? "descending" : "ascending") ? numeric : !numeric;
      for (const other of table.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.children[column];
        if (!numeric) return cell.textContent;
        // The shown number, unless the cell has a more exact one.
        const number = Number.parseFloat(cell.dataset.value ?? cell.textContent.replace(/,/g, "").replace(/^\s*< /, "").replace(/−/g, "-"));
        return Number.isFinite(number) ? number : null;
      };
      const order = (a, b) => {
        const total = a.classList.contains("total") - b.classList.contains("total");
        if (total) return total;
        const [one, two] = [value(a), value(b)];
        if (one === null || two === null) return (one === null) - (two === null);
        const sign = typeof one === "number" ? one - two : one.localeCompare(two, "en", { numeric: true });
        return up ? sign : -sign;
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    };
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  }
};

// Tables as text, by the buttons behind them. Columns with `data-skip` are pictures and links.
const copyable = (within) => {
  const root = document.documentElement;
  const cells = (table) => [...table.querySelectorAll("tr")].map((row) => {
    const heads = [...table.querySelectorAll("thead th")];
    let column = 0;
    return [...row.children].flatMap((cell) => {
      const skip = cell.dataset.skip !== undefined || heads[column]?.dataset.skip !== undefined;
      column += cell.colSpan;
      return skip ? [] : [cell.innerText.replace(/\s+/g, " ").trim()];
    });
  });
  const copy = async (button) => {
    const before = button.closest(".copies").previousElementSibling;
    const table = before.matches("table") ? before : before.querySelector("table");
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
  for (const copies of within.querySelectorAll(".copies")) copies.hidden = false;
  for (const button of within.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
};

// A list whose chosen line is shown beside it. `show` makes what is shown of a line, `address` the part of the address behind # that leads to it.
const walking = ({ list, detail, show, address }) => {
  let lines = [];
  let open = -1;
  let wanted = 0;
  const beside = () => getComputedStyle(detail).position === "sticky";
  const choose = async (index, scroll = true) => {
    if (index < 0 || index >= lines.length) return;
    lines[open]?.classList.remove("open");
    open = index;
    const line = lines[open];
    line.classList.add("open");
    // Where there is no room beside the list, what is shown stands behind its line.
    if (!beside()) line.after(detail);
    if (scroll) line.scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", `#${address(line)}`);
    wanted += 1;
    const mine = wanted;
    const shown = await show(line);
    // A later choice may have been answered already.
    if (mine !== wanted) return;
    detail.replaceChildren(shown);
    detail.scrollTop = 0;
  };
  // Reads the lines that the list has now.
  const read = () => {
    lines = [...list.querySelectorAll(".line")];
    open = -1;
    lines.forEach((line, index) => line.addEventListener("click", (event) => {
      if ((line.getAttribute("href") && !beside()) || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(index, false);
    }));
  };
  return { read, choose, beside, lines: () => lines, opened: () => lines[open], next: () => open + 1 < lines.length && (choose(open + 1), true), previous: () => choose(open - 1) };
};

// Keys, unless something is being written.
const onKeys = (keys) => document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) { if (event.key === "Escape") event.target.blur(); return; }
  // Links and buttons have the key for themselves.
  if (!keys[event.key] || (event.key === "Enter" && event.target !== document.body)) return;
  event.preventDefault();
  keys[event.key]();
});
