"use strict";
// The colours of the page: the reader's system decides until a choice is made. Storage may be closed to local files.
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
