import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
const path = await chromium.executablePath();
console.log(path);
const browser = await puppeteer.launch({ args: [...chromium.args, "--no-sandbox"], executablePath: path, headless: "shell" });
console.log(await browser.version());
await browser.close();
