// A page in headless Chromium for the tests of files, with what went wrong in it.
// The browser is the one that scripts/view-browser.sh installs (EARNEST_BROWSER names its folder). Exit code 77: there is none.
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

const folder = process.env.EARNEST_BROWSER ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "earnest-browser");
const load = (name) => {
  try {
    const loaded = createRequire(join(folder, "package.json"))(name);
    return loaded.default ?? loaded;
  } catch (error) {
    console.log(`skipped: ${error.message.split("\n")[0]} (scripts/view-browser.sh installs it)`);
    process.exit(77);
  }
};

// The browser, its page of 1440 x 900, errors and warnings of the page, and requests that leave it.
export async function start() {
  const [chromium, puppeteer] = ["@sparticuz/chromium", "puppeteer-core"].map(load);
  const browser = await puppeteer.launch({ args: [...chromium.args, "--no-sandbox"], executablePath: await chromium.executablePath(), headless: "shell" });
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  const errors = [];
  const outside = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (["error", "warn"].includes(message.type())) errors.push(message.text()); });
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) outside.push(request.url()); });
  return { browser, page, errors, outside };
}
