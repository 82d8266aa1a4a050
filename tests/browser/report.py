"""Opens a report in headless Chromium and clicks through it. Exit code 77: no browser or no selenium, skipped.

Usage: report.py PAGE.html [SCREENSHOTS]
"""

import json
import re
import shutil
import sys
import time
from pathlib import Path

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.chrome.service import Service
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

browser = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome", "chrome"])), None)
driver_path = shutil.which("chromedriver")
if not browser or not driver_path:
    print("skipped: chromium and chromedriver are not both installed")
    sys.exit(77)

page = Path(sys.argv[1]).resolve()
shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
options = webdriver.ChromeOptions()
options.binary_location = browser
for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"]:
    options.add_argument(flag)
options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
driver = webdriver.Chrome(service=Service(driver_path), options=options)


def slowdown():
    """How many times longer work takes now than on processors of its own: the browser computes on more than one."""
    begun, computed = time.monotonic(), time.process_time()
    while time.process_time() - computed < 0.3:
        pass
    return 2 * (time.monotonic() - begun) / 0.3 - 1


BUSY = slowdown()


def wait(condition, what, seconds=20):
    end = time.monotonic() + seconds * BUSY
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)


def all_of(selector):
    return driver.find_elements(By.CSS_SELECTOR, selector)


def one(selector):
    return driver.find_element(By.CSS_SELECTOR, selector)


def shown(selector):
    return [element for element in all_of(selector) if element.is_displayed()]


def click(element):
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def count():
    return int(one("#count").text.split()[0])


try:
    begin = time.monotonic()
    driver.get(page.as_uri())
    wait(lambda: driver.execute_script("return document.documentElement.dataset.ready") == "true", "samples unpacked", 60)
    opened = time.monotonic() - begin
    total = count()
    assert total > 0

    # Sorting: by name, then back to numbers, the total last whatever the order.
    heading = all_of("#matrix thead th")[1]
    click(heading)
    rows = lambda: [row.get_attribute("data-task") for row in all_of("#matrix tbody tr")]
    value = lambda row: row.find_elements(By.CSS_SELECTOR, "td")[0].get_attribute("data-value")
    values = [float(value(row)) for row in all_of("#matrix tbody tr")[:-1] if value(row)]
    assert values == sorted(values, reverse=True), values
    assert rows()[-1] == "all"
    click(heading)
    values = [float(value(row)) for row in all_of("#matrix tbody tr")[:-1] if value(row)]
    assert values == sorted(values), values
    assert rows()[-1] == "all" and heading.get_attribute("aria-sort") == "ascending"
    click(all_of("#matrix thead th")[0])
    # As people sort: capitals are no words of their own.
    assert rows()[:-1] == sorted(rows()[:-1], key=str.casefold), rows()

    # The picker hides a task everywhere.
    click(one("#picker summary"))
    boxes = all_of("#picker input[name=task]")
    task = boxes[0].get_attribute("value")
    rows_of_task = f"#matrix tr[data-task='{task}'], #matrix tr[data-task^='{task} ']"
    selector = f"{rows_of_task}, #curves figure[data-task='{task}']"
    before = len(shown(selector))
    assert before >= 1
    click(boxes[0])
    assert shown(selector) == [], "the task is still shown"
    wait(lambda: count() < total or len(boxes) == 1, "the task's samples left the list")
    click(one("#picker button[data-all=task]"))
    assert len(shown(selector)) == before
    runs = all_of("#picker input[name=run]")
    if len(runs) > 1:
        click(runs[0])
        assert shown("#matrix th[data-run='0']") == [] and shown(".card[data-run='0']") == []
        click(one("#picker button[data-all=run]"))
    wait(lambda: count() == total, "all samples are back")

    # The sample browser: filter, search, order, pages, details.
    from selenium.webdriver.support.select import Select

    outcome = Select(one("#outcome"))
    # Every outcome's option says how many samples it lists; a run may have one outcome only.
    told = {option.get_attribute("value"): int(re.search(r"\((\d+)\)$", option.text)[1])
            for option in outcome.options if option.get_attribute("value")}
    for value, samples in told.items():
        outcome.select_by_value(value)
        wait(lambda: count() == samples, f"the {samples} samples of outcome {value}")
    assert sum(samples for value, samples in told.items() if value != "wrong") == total, told
    outcome.select_by_value("")
    wait(lambda: count() == total, "all outcomes again")
    Select(one("#by")).select_by_value("tokens")
    click(all_of("#list summary")[0])
    wait(lambda: len(all_of("#list details[open] pre")) >= 3, "the sample's texts")
    longest = one("#list details[open] p:last-child").text
    assert "tokens" in longest, longest
    Select(one("#by")).select_by_value("place")
    click(all_of("#list summary")[0])
    wait(lambda: len(all_of("#list details[open] pre")) >= 3, "the first sample's texts")
    gold = all_of("#list details[open] pre")[1].text
    box = one("#search")
    box.send_keys(gold[:12])
    wait(lambda: 0 < count() < total, "the search finds some")
    assert all_of("#list summary"), "no sample is listed"
    box.clear()
    box.send_keys("zzzz-no-such-text")
    wait(lambda: count() == 0, "the search finds nothing")
    driver.execute_script("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", box)
    wait(lambda: count() == total, "the search is over")
    if total > 50:
        click(one("#next"))
        assert one("#page").text.startswith("page 2 of"), one("#page").text
        click(one("#back"))

    # No markup from a completion became an element.
    assert driver.execute_script("return window.earnestWasHere") is None

    # A paper's figures: a model that is not chosen leaves them, their own series stay.
    apart = all_of("[data-apart] [data-task]")
    if apart:
        labels = [box.get_attribute("data-label") for box in all_of("#picker input[name=run]")]
        of_first = f"[data-apart] [data-task='{labels[0]}']"
        assert shown(of_first), labels
        click(one("#picker input[name=run]"))
        assert not shown(of_first) and (len(labels) == 1 or shown("[data-apart] [data-task]")), labels
        click(one("#picker button[data-all=run]"))
        click(one("#picker button[data-none=task]"))
        assert shown(of_first) and not shown("#matrix tbody tr:not(.total)")
        click(one("#picker button[data-all=task]"))

    # Widths: nothing is cut, no word is broken in a table.
    BROKEN = """
        const broken = [];
        for (const cell of document.querySelectorAll("#tables th, #tables td")) {
          if (!cell.checkVisibility()) continue;
          const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          for (let node; (node = walker.nextNode());) {
            for (const word of node.data.matchAll(/[^\\s\u2013-]+/g)) {
              const range = document.createRange();
              range.setStart(node, word.index);
              range.setEnd(node, word.index + word[0].length);
              if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
            }
          }
        }
        return broken;
    """
    CUT = """
        return [...document.querySelectorAll("nav a")].filter((link) => {
          const box = link.getBoundingClientRect();
          const within = link.parentElement.getBoundingClientRect();
          return box.left < within.left - 1 || box.right > Math.min(within.right, innerWidth) + 1;
        }).map((link) => link.textContent);
    """
    for width, height, name in [(1200, 900, "wide"), (390, 844, "phone")]:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        overflow = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"the page is {overflow} pixels too wide at {width}"
        cut = driver.execute_script(CUT)
        assert not cut, f"links are cut at {width}: {cut}"
        broken = driver.execute_script(BROKEN)
        assert not broken, f"words are broken at {width}: {broken}"
        for theme in ["light", "dark"] if shots else []:
            shots.mkdir(parents=True, exist_ok=True)
            driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
            for section in all_of("main section"):
                driver.execute_script("arguments[0].scrollIntoView()", section)
                driver.save_screenshot(str(shots / f"{name}-{theme}-{section.get_attribute('id')}.png"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    # Paper: what is folded is printed, by the style alone and by the script, and folded again.
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    HIDDEN = """
        return [...document.querySelectorAll("main details:not(#list details) > :not(summary)")]
          .filter((child) => !child.checkVisibility()).length
    """
    folded = "return document.querySelectorAll('main details:not([open])').length"
    if driver.execute_script("return CSS.supports('selector(::details-content)')"):
        assert driver.execute_script(HIDDEN) == 0, "folded parts are not printed"
    before = driver.execute_script(folded)
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert driver.execute_script("return document.querySelectorAll('main details:not([open]):not(#list details)').length") == 0
    assert driver.execute_script(HIDDEN) == 0
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert driver.execute_script(folded) == before > 0
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    errors = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert not errors, errors
    sent = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [message["params"]["request"]["url"] for message in sent if message["method"] == "Network.requestWillBeSent"]
    outside = [url for url in urls if not url.startswith(("file:", "data:", "blob:"))]
    assert not outside, outside
    limit = 3.0 * max(BUSY, slowdown())
    print(f"{total} samples, {page.stat().st_size / 2**20:.2f} MiB, ready after {opened:.2f} s, no console message, no request")
    assert opened < limit or "--slow" in sys.argv, f"the page took {opened:.2f} s to open, the limit is {limit:.1f} s"
finally:
    driver.quit()
