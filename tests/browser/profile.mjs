// Opens the page of one or two numeracy profiles in headless Chromium: PAGE.html [FOLDER for screenshots].
// Exit code 77: there is no browser.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { start } from "./chromium.mjs";

const [file, shots] = process.argv.slice(2);
if (shots) mkdirSync(shots, { recursive: true });
const { browser, page, errors, outside } = await start();
let failed = 0;
const check = (what, holds, found = "") => {
  console.log(`${holds ? "  " : "FAILED: "}${what}${holds ? "" : ` ${JSON.stringify(found)}`}`);
  failed += holds ? 0 : 1;
};
const all = (selector, read) => page.$$eval(selector, read);

await page.goto(pathToFileURL(resolve(file)), { waitUntil: "load" });
const order = await all("main > section, main > details.part", (parts) => parts.map((part) => part.id));
check("the limits come first", order[0] === "limits", order);
check("a link for every part", (await all("nav a", (links) => links.length)) === order.length, order);

// Bars of digits: on the first screen, with a number each, of which none stands over another text.
const bottom = await page.$eval("#limits .limits", (limits) => limits.getBoundingClientRect().bottom);
check(`the bars take one screen, ${Math.round(bottom)} px`, bottom < 900, bottom);
check("every panel has bars", (await all("#limits svg", (panels) => panels.every((panel) => panel.querySelector("rect.bar, text")))));
const over = await all("svg", (drawings) => drawings.flatMap((drawing) => {
  const texts = [...drawing.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const apart = (one, other) => one.right <= other.left + 1 || other.right <= one.left + 1 || one.bottom <= other.top + 3 || other.bottom <= one.top + 3;
  return texts.flatMap(([name, one], place) => texts.slice(place + 1).filter(([, other]) => !apart(one, other)).map(([other]) => `${name} over ${other}`));
}));
check("no text of a drawing stands over another", over.length === 0, over.slice(0, 5));
check("a drawing has one name", (await all("svg[role=img]", (drawings) => drawings.every((one) => one.ariaLabel && !one.querySelector(":scope > title")))));

// Wrong answers: the table is not cut off, and the folded tables open.
const cut = () => all(".scroll", (boxes) => boxes.filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1).map((box) => [box.closest("section").id, box.scrollWidth, box.clientWidth]));
check("no table is cut off", (await cut()).length === 0, await cut());
if (await page.$("#anatomy table.classes")) {
  check("a share shows its interval", (await all("#anatomy td.shaded", (cells) => cells.every((cell) => /^\d+ \d+-\d+(; chance \d+)?$/.test(cell.textContent)))));
  check("a cell says its interval", (await all("#anatomy td.shaded", (cells) => cells.every((cell) => /\d+ of \d+, \d+ % \(\d+-\d+\)/.test(cell.title)))));
}
for (const [place, summary] of (await page.$$("details.part > summary")).entries()) {
  await summary.click();
  check(`folded part ${place + 1} opens`, await summary.evaluate((one) => one.parentElement.open && one.parentElement.querySelector("tbody tr").checkVisibility()));
}
check("nor with everything open", (await cut()).length === 0, await cut());
if (shots) await page.screenshot({ path: `${shots}/profile.png`, fullPage: true });

for (const width of [1024, 390]) {
  await page.setViewport({ width, height: 844 });
  const beyond = await page.evaluate((width) => document.documentElement.scrollWidth - width, width);
  check(`${width} px: nothing stands outside`, beyond <= 1, beyond);
}
if (shots) await page.screenshot({ path: `${shots}/profile-phone.png`, fullPage: true });
await page.emulateMediaType("print");
const printed = Buffer.from(await page.pdf({ format: "A4" })).toString("latin1").split(/\/Type\s*\/Page\b(?!s)/).length - 1;
check(`${printed} printed pages`, printed >= 1 && printed <= 12, printed);
check("no request leaves the page", outside.length === 0, outside);
check("no error", errors.length === 0, errors);
await browser.close();
process.exit(failed > 0 ? 1 : 0);
