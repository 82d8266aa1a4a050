// Opens a report in headless Chromium and clicks through it: PAGE.html [FOLDER for screenshots].
// Exit code 77: there is no browser.
import { mkdirSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { start } from "./chromium.mjs";

const [file, shots] = process.argv.slice(2);
if (shots) mkdirSync(shots, { recursive: true });
const { browser, page, errors, outside } = await start();
let failed = 0;
const check = (what, holds, found = "") => {
  if (!holds) console.log(`FAILED: ${what} ${JSON.stringify(found).slice(0, 400)}`);
  failed += holds ? 0 : 1;
};
const until = (what, condition, ...values) => page.waitForFunction(condition, { timeout: 30000, polling: 20 }, ...values).catch(() => check(what, false));
const all = (selector, read) => page.$$eval(selector, read);
// Chromium's checkVisibility forgets that a group of a drawing was hidden a moment ago; its style does not.
const shown = (selector) => all(selector, (found) => found.filter((one) => getComputedStyle(one).display !== "none" && one.checkVisibility()).length);
const click = (selector) => page.$eval(selector, (element) => element.click());
const count = () => page.$eval("#count", (count) => Number.parseInt(count.textContent.replace(/,/g, ""), 10));
const counted = (what, wanted) => until(what, (wanted) => Number.parseInt(document.querySelector("#count").textContent.replace(/,/g, ""), 10) === wanted, wanted);

const begin = performance.now();
await page.goto(pathToFileURL(resolve(file)), { waitUntil: "domcontentloaded" });
await page.waitForSelector("html[data-ready=true]", { timeout: 60000 });
const opened = (performance.now() - begin) / 1000;

// The results, the heat map and the differences come first and unfolded; everything else is folded.
const order = await all("main > section, main > details.part", (parts) => parts.map((part) => [part.id, part.localName]));
const first = order.findIndex(([, name]) => name === "details");
check("sections before the appendix", order.slice(0, first).every(([, name]) => name === "section") && order.slice(first).every(([, name]) => name === "details"), order);
check("results first", order[0][0] === "summary", order);
check("nothing of the appendix is open", (await all("main > details[open]", (open) => open.length)) === 0);
const runs = await all("#picker input[name=run]", (boxes) => boxes.map((box) => box.dataset.label));
check("a result for every model", (await shown(".run .number")) === runs.length);
if (await page.$("#heat .heat svg")) {
  const [used, bottom] = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll("#heat .heat svg")].filter((svg) => svg.checkVisibility()).map((svg) => svg.getBoundingClientRect());
    return [(Math.max(...boxes.map((box) => box.right)) - Math.min(...boxes.map((box) => box.left))) / innerWidth, Math.min(...boxes.map((box) => box.top))];
  });
  check(`the heat map takes ${Math.round(100 * used)} % of the width`, used > 0.6 && used <= 1, used);
  check("the heat map begins on the first screen", bottom < 700, bottom);
}
if ((await page.$$(".tabs > label")).length > 1) {
  await page.click(".tabs > label:nth-of-type(2)");
  check("another model's heat map", (await shown(".tabs .tab")) === 1 && (await page.$eval(".tabs .tab:nth-of-type(2)", (tab) => tab.checkVisibility())));
  await page.click(".tabs > label:nth-of-type(1)");
}

// A link opens the part that it leads to. Sorting: by name, then back to numbers, the total last whatever the order.
await click("nav a[href='#tables']");
await until("a link opens its part", () => document.querySelector("#tables").open);
const rows = () => all("#matrix tbody tr", (rows) => rows.map((row) => [row.dataset.task, row.querySelector("td").dataset.value]));
const numbers = async () => (await rows()).slice(0, -1).map(([, value]) => value).filter(Boolean).map(Number);
const isSorted = (values, sign) => values.every((value, place) => place === 0 || sign * (value - values[place - 1]) >= 0);
await page.click("#matrix thead th:nth-child(2)");
check("sorted down", isSorted(await numbers(), -1), await numbers());
await page.click("#matrix thead th:nth-child(2)");
check("sorted up", isSorted(await numbers(), 1) && (await rows()).at(-1)[0] === "all", await rows());
check("says so", (await page.$eval("#matrix thead th:nth-child(2)", (head) => head.ariaSort)) === "ascending");
await page.click("#matrix thead th:nth-child(1)");
check("by name", (await rows()).at(-1)[0] === "all");

// The picker hides a task and a model everywhere.
await page.click("#picker summary");
const task = await page.$eval("#picker input[name=task]", (box) => box.value);
const of_task = `#matrix tr[data-task='${task}'], #matrix tr[data-task^='${task} ']`;
const before = await shown(of_task);
check("the task is shown", before >= 1);
await click("#picker input[name=task]");
check("the task is hidden", (await shown(of_task)) === 0);
await click("#picker button[data-all=task]");
check("the task is back", (await shown(of_task)) === before);
if (runs.length > 1) {
  await click("#picker input[name=run]");
  check("a model is hidden", (await shown("#matrix th[data-run='0']")) === 0 && (await shown(".run[data-run='0']")) === 0);
  await click("#picker button[data-all=run]");
}

// A paper's figures: a model that is not chosen leaves them, their own series stay.
if (await page.$("[data-apart] [data-task]")) {
  await all("main > details.part", (parts) => parts.forEach((part) => { part.open = true; }));
  const of_first = `[data-apart] [data-task='${runs[0]}']`;
  check("a model is in the paper's figures", (await shown(of_first)) > 0, runs);
  await click("#picker input[name=run]");
  const left = [await shown(of_first), await shown("[data-apart] [data-task]")];
  check("and leaves them", left[0] === 0 && (runs.length === 1 || left[1] > 0), [runs, left]);
  await click("#picker button[data-all=run]");
  await click("#picker button[data-none=task]");
  check("tasks do not concern them", (await shown(of_first)) > 0 && (await shown("#matrix tbody tr:not(.total)")) === 0);
  await click("#picker button[data-all=task]");
}

// The samples are unpacked when they are opened: filter, search, order, pages, details.
await click("nav a[href='#samples']");
await page.waitForSelector("html[data-samples=ready]", { timeout: 60000 });
const total = await count();
check("samples are listed", total > 0);
const told = await all("#outcome option", (options) => options.filter((option) => option.value).map((option) => [option.value, Number(/\(([\d,]+)\)$/.exec(option.textContent)[1].replace(/,/g, ""))]));
for (const [value, samples] of told) {
  await page.select("#outcome", value);
  await counted(`the ${samples} samples of outcome ${value}`, samples);
}
check("every sample has one outcome", told.filter(([value]) => value !== "wrong").reduce((sum, [, samples]) => sum + samples, 0) === total, told);
await page.select("#outcome", "");
await counted("all outcomes again", total);
await page.select("#by", "tokens");
await until("the longest answer", () => document.querySelectorAll("#detail article pre").length >= 4);
check("its facts", (await page.$eval("#detail .facts", (facts) => facts.textContent)).includes("task"));
await page.select("#by", "item");
await until("the first sample's texts", () => document.querySelector(".line.open") === document.querySelector(".line"));
const gold = await page.$$eval("#detail article pre", (texts) => texts[1].textContent);
// Keys walk through the list, and the address has the chosen sample.
await page.keyboard.press("j");
await until("j shows the next sample", () => document.querySelector(".line.open") === document.querySelectorAll(".line")[1] && document.querySelectorAll("#detail article pre").length >= 4);
const second = await page.$eval(".line.open", (line) => line.dataset.id);
check("the address has it", new URLSearchParams(decodeURI(page.url()).split("?")[1]).get("item") === second, page.url());
await page.keyboard.press("k");
await page.keyboard.press("/");
check("/ searches", (await page.evaluate(() => document.activeElement.id)) === "search");
await page.type("#search", gold.slice(0, 12));
await until("the search finds some", (total) => { const found = Number.parseInt(document.querySelector("#count").textContent.replace(/,/g, ""), 10); return found > 0 && found < total; }, total);
const search = (text) => page.$eval("#search", (box, text) => { box.value = text; box.dispatchEvent(new Event("input")); }, text);
await search("zzzz-no-such-text");
await counted("the search finds nothing", 0);
await search("");
await counted("the search is over", total);
if (total > 50) {
  await click("#next");
  check("the second page", (await page.$eval("#page", (page) => page.textContent)).startsWith("page 2 of"));
  await click("#back");
}
// A cell of the heat map, and one of the table, lead to their samples.
const chosen = () => page.$$eval(".line", (lines) => lines.length).then(async (lines) => [lines, await count(), await page.$eval("#task", (task) => task.selectedOptions[0].textContent), await page.$eval("#length", (length) => length.selectedOptions[0].textContent)]);
const address = await page.evaluate(() => { const link = [...document.querySelectorAll("#heat svg a")].find((one) => one.checkVisibility()); return link?.getAttribute("href"); });
if (address) {
  await page.evaluate((address) => [...document.querySelectorAll("#heat svg a")].find((one) => one.getAttribute("href") === address).dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })), address);
  const wanted = new URLSearchParams(address.split("?")[1]);
  await until("a cell chooses", (task) => (task === null) === (document.querySelector("#task").value === "") && document.querySelector("#length").value !== "", wanted.get("task"));
  const [lines, samples] = await chosen();
  check("a cell of the heat map has samples", samples > 0 && samples < total && lines > 0, [address, samples, total]);
  check("they are its samples", (await page.$eval("#detail .facts", (facts) => facts.textContent)).includes(wanted.get("covariate").split("=")[1]));
}
const cell = await page.$("#matrix tbody td a");
if (cell) {
  const href = await cell.evaluate((link) => { link.click(); return link.getAttribute("href"); });
  const chosen = new URLSearchParams(href.split("?")[1]);
  await until("a cell of the table chooses its task", (task, covariate) => document.querySelector("#task").value !== "" && location.hash.includes(encodeURIComponent(task)) && (document.querySelector("#length").value === "") === (covariate === null), chosen.get("task"), chosen.get("covariate"));
  check("and has samples", (await count()) > 0);
}
// What a scorer read is marked where it stands, and the scorer that decides is named.
const parts = await page.evaluate(() => {
  const lines = [...document.querySelectorAll(".line")];
  lines[0]?.click();
  return lines.length;
});
if (parts > 0) await until("a scorer decides", () => [...document.querySelectorAll("#detail article th small")].some((one) => one.textContent === "decides"));
// Numbers of flips lead to the items with both answers side by side.
await page.evaluate(() => { location.hash = "#samples?"; });
await counted("all samples before the flips", total);
const flips = await page.$$eval("#overall td a", (links) => links.map((link) => [link.getAttribute("href"), Number(link.textContent.replace(/,/g, ""))]));
check("two models have flips", runs.length < 2 || flips.length > 0 || !(await page.$("#overall")), flips);
for (const [href, number] of flips) {
  await page.evaluate((hash) => { location.hash = hash; }, href);
  await until(`the ${number} items of ${href}`, (text) => document.querySelector("#count").textContent === text, `${number.toLocaleString("en")} of ${number.toLocaleString("en")} items`);
  await until("both answers side by side", () => document.querySelectorAll("#detail article .answers > section").length === 2);
  const badges = await all("#detail article .answers .badge", (badges) => badges.map((badge) => badge.classList.contains("good")));
  check("one is right and the other is not", badges[0] && !badges[1], [href, badges]);
  const listed = await page.$$eval(".line .both", (both) => both.length);
  check("lines have both answers", listed === Math.min(number, 50), [href, listed]);
  const at = await page.$eval(".line.open", (line) => line.dataset.id);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("j");
  if (number > 1) await until("j shows the next pair", (at) => document.querySelector(".line.open").dataset.id !== at && document.querySelectorAll("#detail .answers > section").length === 2, at);
}
await page.evaluate(() => { location.hash = "#samples?right=9&wrong=9&what=ever"; });
await until("stale flips are said", () => ["what ever", "right in 9"].every((part) => document.querySelector("#missing").textContent.includes(part)));
await page.evaluate(() => { location.hash = "#no-such-part"; });
await until("a part that is not there is said", () => document.querySelector("main > .lost")?.textContent.includes("no-such-part"));
await page.evaluate(() => { location.hash = "#samples?task=no-such-task"; });
await until("a stale address is said", () => document.querySelector("#missing").textContent.includes("task no-such-task"));
await page.evaluate(() => { location.hash = "#samples?"; });
await counted("an address without a choice has all", total);
check("no markup from a completion became an element", await page.evaluate(() => window.earnestWasHere === undefined));

// Widths, with everything open: nothing is cut, no word is broken in a table.
await all("main details", (parts) => parts.forEach((part) => { part.open = true; }));
for (const [width, height, name] of [[1920, 1080, "wide"], [1440, 900, "usual"], [390, 844, "phone"]]) {
  await page.setViewport({ width, height });
  const found = await page.evaluate(() => {
    const broken = [];
    for (const cell of document.querySelectorAll("#tables th, #tables td, #overall th, #overall td")) {
      if (!cell.checkVisibility()) continue;
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      for (let node; (node = walker.nextNode());) {
        for (const word of node.data.matchAll(/[^\s–-]+/g)) {
          const range = document.createRange();
          range.setStart(node, word.index);
          range.setEnd(node, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
        }
      }
    }
    const cut = [...document.querySelectorAll("nav a")].filter((link) => {
      const box = link.getBoundingClientRect();
      const within = link.parentElement.getBoundingClientRect();
      return box.left < within.left - 1 || box.right > Math.min(within.right, innerWidth) + 1;
    }).map((link) => link.textContent);
    // Labels of a drawing: texts whose boxes share more than a sliver.
    const over = [];
    for (const svg of document.querySelectorAll("figure svg")) {
      if (!svg.checkVisibility()) continue;
      const boxes = [...svg.querySelectorAll("text")].filter((text) => text.checkVisibility()).map((text) => [text.textContent, text.getBoundingClientRect()]);
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      boxes.sort((one, other) => one[1].left - other[1].left);
      boxes.forEach(([label, box], place) => {
        for (const [other, beside] of boxes.slice(place + 1)) {
          if (beside.left > box.right) break;
          const [across, down] = [Math.min(box.right, beside.right) - beside.left, Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top)];
          if (across > 1.5 * scale && down > 4.5 * scale) over.push(`${svg.ariaLabel.slice(0, 40)}: ${label} / ${other}`);
        }
      });
    }
    const limit = document.documentElement.clientWidth;
    const reach = (element) => element.getBoundingClientRect().right;
    const outside = [...document.querySelectorAll("body *")].filter((element) => reach(element) > limit + 1 && element.checkVisibility() && !element.parentElement.closest(".scroll"));
    const widest = outside.slice(0, 5).map((element) => `${element.localName}#${element.id}.${element.getAttribute("class") ?? ""} ${Math.round(reach(element))}`);
    return { over, broken, cut, wider: document.documentElement.scrollWidth - limit, widest };
  });
  check(`the page is not too wide at ${width}`, found.wider <= 0, [found.wider, found.widest]);
  check(`no link is cut at ${width}`, found.cut.length === 0, found.cut);
  check(`no word is broken at ${width}`, found.broken.length === 0, found.broken);
  check(`no label is over another at ${width}`, found.over.length === 0, found.over.slice(0, 5));
}
await all("main details", (parts) => parts.forEach((part) => { part.open = false; }));
for (const [width, height, name] of shots ? [[1920, 1080, "wide"], [1440, 900, "usual"], [390, 844, "phone"]] : []) {
  await page.setViewport({ width, height });
  for (const theme of ["light", "dark"]) {
    await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; scrollTo(0, 0); }, theme);
    await page.screenshot({ path: `${shots}/${name}-${theme}.png` });
    await page.screenshot({ path: `${shots}/${name}-${theme}-whole.png`, fullPage: true });
  }
}

// Paper: the appendix only where it is asked for, and then all of it.
await page.setViewport({ width: 1440, height: 900 });
await page.emulateMediaType("print");
const hidden = () => all("main details:not(#picker)", (parts) => parts.filter((part) => ![...part.children].some((child) => child.localName !== "summary" && child.checkVisibility())).length);
check("the appendix is not printed", (await shown("main > details.part")) === 0);
await click("#appendix");
check("the appendix is printed if asked for", (await shown("main > details.part")) > 0);
check("and unfolded", (await hidden()) === 0, await hidden());
await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
check("the script unfolds too", (await all("main details:not([open])", (parts) => parts.length)) === 0);
await page.evaluate(() => dispatchEvent(new Event("afterprint")));
check("and folds again", (await all("main > details[open]", (parts) => parts.length)) === 0);
await click("#appendix");
await page.emulateMediaType(null);
const pages = (pdf) => Buffer.from(pdf).toString("latin1").split(/\/Type\s*\/Page\b(?!s)/).length - 1;
const printed = pages(await page.pdf({ format: "A4" }));
check(`${printed} printed pages`, printed >= 1 && printed <= 8, printed);
if (shots) await page.pdf({ format: "A4", path: `${shots}/printed.pdf` });

check("no console message", errors.length === 0, errors);
check("no request", outside.length === 0, outside);
console.log(`${total} samples, ${(statSync(file).size / 2 ** 20).toFixed(2)} MiB, ready after ${opened.toFixed(2)} s, ${printed} printed pages`);
await browser.close();
process.exit(failed > 0 ? 1 : 0);
