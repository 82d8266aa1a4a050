// Pages of a running `earnest view` in headless Chromium: ADDRESS, ADDRESS of a store with other kinds of runs, [FOLDER for screenshots] (see view-browser.sh).
import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [address, other, shots] = process.argv.slice(2);
const browser = await puppeteer.launch({ args: [...chromium.args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell" });
let failed = 0;
const check = (what, holds, found = "") => {
  console.log(`${holds ? "  " : "FAILED: "}${what}${holds ? "" : ` ${JSON.stringify(found)}`}`);
  failed += holds ? 0 : 1;
};
const page = await browser.newPage();
await page.setViewport({ width: 1440, height: 900 });
const errors = [];
const elsewhere = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
page.on("request", (request) => { if (![address, other].some((own) => request.url().startsWith(own.split("/").slice(0, 3).join("/"))) && !request.url().startsWith("data:")) elsewhere.push(request.url()); });
const shot = async (name) => { if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true }); };
const ready = () => page.waitForSelector("html[data-ready=true]");
const open = async (path) => { await page.goto(path, { waitUntil: "load" }); await ready(); };
const text = (selector) => page.$eval(selector, (element) => element.innerText);
const count = (selector) => page.$$eval(selector, (all) => all.length);
const click = async (selector) => { await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.click(selector)]); await ready(); };

await open(address);
await shot("leaderboard");
check("three runs are listed, that of another temperature apart", (await count("section.board > .scroll tbody tr")) === 3 && (await count("section.board")) === 2);
// The page may be loaded before it is painted.
await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
check(`first paint after ${Math.round(paint)} ms`, paint < 1000, paint);
await page.click("a.fetch");
await page.waitForSelector(".part table");
check("differences come in place", (await text(".part")).includes("Holm"));
await page.click("section.board .copies [data-copy=markdown]");
const markdown = await page.$eval("html", (html) => html.dataset.copied);
check("a table is copied as Markdown", markdown.startsWith("| model |") && markdown.split("\n").length >= 4, markdown);
await page.click("section.board .copies [data-copy=csv]");
check("and as CSV", (await page.$eval("html", (html) => html.dataset.copied)).startsWith("model,"));
// Names are texts in the copies, whatever they look like.
const hostile = [["model", "x"], ["=1+1", "-0.5"], ["+1.2 [0, 2]", "'@x"], ["<b>a_b|c](http://x)</b>", "\\input{x}~^"]];
const formatted = await page.evaluate((rows) => Object.fromEntries(Object.entries(formats).map(([name, format]) => [name, format(rows)])), hostile);
check("formulas are quoted in a CSV, numbers are not", formatted.csv === "model,x\n'=1+1,-0.5\n\"'+1.2 [0, 2]\",''@x\n<b>a_b|c](http://x)</b>,\\input{x}~^", formatted.csv);
check("markup is text in Markdown", formatted.markdown.endsWith("| &lt;b&gt;a\\_b\\|c\\](http://x)&lt;/b&gt; | \\\\input{x}\\~^ |"), formatted.markdown);
check("commands are text in LaTeX", formatted.latex.includes("\\textbackslash{}input\\{x\\}\\textasciitilde{}\\textasciicircum{}"), formatted.latex);
await page.click("section.board .copies [data-copy=latex]");
check("and as LaTeX", (await page.$eval("html", (html) => html.dataset.copied)).includes("\\begin{tabular}"));

await click("section.board tbody tr th a");
await shot("run");
check("a run has its heat map", (await count("figure.wide svg")) === 1);
const wide = await page.$eval("figure.wide svg", (svg) => svg.getBoundingClientRect().width / innerWidth);
check(`the heat map takes ${Math.round(100 * wide)} % of the width`, wide > 0.3 && wide <= 1, wide);
await page.$$eval("details:not([open]) > summary", (all) => all.forEach((summary) => summary.click()));
await page.click(".sortable thead th:nth-child(3)");
check("a table sorts", (await page.$eval(".sortable thead th:nth-child(3)", (head) => head.getAttribute("aria-sort"))) !== null);

await click(".links a.button");
await page.waitForSelector("#detail article");
await shot("samples");
const first = await text("#detail .item");
await page.keyboard.press("j");
await page.waitForFunction((before) => document.querySelector("#detail .item")?.innerText !== before, {}, first);
check("j shows the next sample", (await count(".line.open")) === 1 && page.url().endsWith("#1"), page.url());
await page.keyboard.press("k");
await page.waitForFunction((before) => document.querySelector("#detail .item")?.innerText === before, {}, first);
check("k goes back", true);
await page.keyboard.press("/");
check("/ searches", (await page.evaluate(() => document.activeElement.id)) === "search");
await page.keyboard.type("1");
await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.keyboard.press("Enter")]);
await ready();
check("filters are in the address, empty ones are not", page.url().includes("q=1") && !page.url().includes("task="), page.url());
await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.select("select[name=outcome]", "correct")]);
await ready();
const badges = await page.$$eval(".line .badge", (all) => [...new Set(all.map((badge) => badge.innerText))]);
check("only right answers are left", badges.join() === "right", badges);
check("the extracted answer is marked", (await count("#detail mark")) >= 1);
await page.keyboard.press("?");
check("? lists the keys", await page.$eval("#help", (dialog) => dialog.open));
await page.keyboard.press("Escape");
await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.keyboard.press("u")]);
await ready();
check("u goes up to the run", /\/run\/[^/]+$/.test(page.url()), page.url());

// Not the run that differs in its weights' type alone, whose answers are the same.
const others = await page.$$eval(".links select option", (all) => all.map((option) => option.value));
await page.select(".links select", others.find((name) => !name.includes("-f32-")));
await click(".links form button");
await shot("compare");
check("a comparison says its interval", (await text(".big")).includes("95 % interval"));
if ((await count(".flips a")) > 0) {
  await click(".flips a");
  await shot("pair");
  check("two answers stand side by side", (await count("pre.completion")) === 2);
}

// Runs of other kinds: `Token by token`, thinking, log-likelihoods, a run that works.
const openRun = async (part) => {
  await open(other);
  await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.evaluate((part) => [...document.querySelectorAll("tbody tr th a")].find((link) => link.href.includes(part)).click(), part)]);
  await ready();
};
const openSamples = async (part) => {
  await openRun(part);
  await click(".links a.button");
  await page.waitForSelector("#detail article");
};
await openSamples("thinker");
check("thinking is folded", (await count("#detail details.thinking")) === 1 && !(await page.$eval("#detail details.thinking", (one) => one.open)));
await page.click("#detail details.thinking summary");
check("a click opens it", await page.$eval("#detail details.thinking", (one) => one.open) && (await text("#detail details.thinking")).includes("three and four make seven"));
await page.keyboard.press("t");
check("t closes it", !(await page.$eval("#detail details.thinking", (one) => one.open)));
await shot("thinking");
await openSamples("capitals");
const tints = await page.$$eval("#detail .likelihoods code", (all) => all.map((one) => [one.className, getComputedStyle(one).backgroundColor]));
check("scored continuations are tinted", tints.length === 3 && tints.every(([name, colour]) => /^t[0-8]$/.test(name) && (name === "t0" || colour !== "rgba(0, 0, 0, 0)")), tints);
await shot("likelihoods");
await open(address);
await click("section.board tbody tr th a");
await click(".links a.button");
await page.waitForSelector("#detail article");
await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.evaluate(() => [...document.querySelectorAll("#detail .links a")].find((link) => link.innerText === "Token by token").click())]);
await ready();
check("a sample is shown token by token", (await count("pre.tokens")) === 2 && (await count("pre.tokens span[title^='token ']")) > 4, await count("pre.tokens span"));
await shot("tokens");
await openRun("gsm-mini");
await page.waitForFunction(() => / of \d+ samples/.test(document.getElementById("progress")?.innerText ?? ""), { timeout: 20000 });
const before = await text("#progress");
check(`a run shows its progress: ${before}`, (await count("#live progress")) === 1);
await page.waitForFunction((before) => document.getElementById("progress").innerText !== before, { timeout: 60000 }, before);
check("and goes on by itself", true);
await shot("live");

await page.setViewport({ width: 390, height: 844, isMobile: true });
for (const [name, link] of [["leaderboard-phone", null], ["run-phone", "section.board tbody th a"], ["samples-phone", "section.board tbody td a"]]) {
  await open(address);
  if (link) await open(await page.$eval(link, (found) => found.href));
  const over = await page.evaluate(() => document.documentElement.scrollWidth - 390);
  await shot(name);
  check(`${name} fits the width`, over <= 1, over);
}
await page.setViewport({ width: 1440, height: 900 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
await open(address);
await shot("leaderboard-dark");
const refused = await page.goto(address.replace(/[0-9a-f]{32}/, "0".repeat(32)));
check("another token sees nothing", refused.status() === 404 && !(await page.content()).includes("nupa"));
const missing = await page.goto(`${address}run/none`);
check("a run that is not there is said", missing.status() === 404);
await shot("missing");
check("no page asks another site", elsewhere.length === 0, elsewhere);
check("no page has an error", errors.filter((error) => !error.includes("404")).length === 0, errors);
await browser.close();
process.exit(failed > 0 ? 1 : 0);
