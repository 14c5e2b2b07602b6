"""The report in a real browser: headless Chromium by selenium. Skipped, visibly, where there is none; with
KERNELRULES_NEED_BROWSER set, as by `.ci/run` where it installs one, that is a failure.

KERNELRULES_SCREENSHOTS names a folder to keep the screenshots in; otherwise they go to pytest's.
"""

import base64
import importlib
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from csv_table import table

from kernelrules.report.cli import main

# Sockets that selenium leaves to the collector are not this package's to close.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES = {"desktop": 1100, "phone": 390}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "small.csv").write_text(table(n=200), encoding="utf-8")
    code = main(["report", str(folder / "small.csv"), "--target", "target", "-o", str(folder / "r.html"), "--folds=2",
                 "--quiet"])  # fmt: skip
    assert code == 0
    return folder / "r.html"


def absent(what):
    """No test without a browser: skipped, or failed where one must be there."""
    if os.environ.get("KERNELRULES_NEED_BROWSER"):
        pytest.fail(f"{what}, and KERNELRULES_NEED_BROWSER is set")
    pytest.skip(what)


def programs():
    """selenium's part that drives browsers, Chromium, its driver."""
    try:
        webdriver = importlib.import_module("selenium.webdriver")
    except ImportError:
        absent("selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        absent("no Chromium with its driver on this machine")
    return webdriver, chromium, driver


@pytest.mark.parametrize("lacks", ["selenium", "chromium", "chromedriver"])
def test_without_a_browser(monkeypatch, lacks):
    monkeypatch.setitem(sys.modules, "selenium.webdriver", None if lacks == "selenium" else object())
    there = {"selenium", "chromium", "chromedriver"} - {lacks}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in there else None)
    monkeypatch.delenv("KERNELRULES_NEED_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception):
        programs()
    monkeypatch.setenv("KERNELRULES_NEED_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="KERNELRULES_NEED_BROWSER is set"):
        programs()


@pytest.fixture(scope="module")
def browser():
    webdriver, chromium, driver = programs()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(driver)
    started = webdriver.Chrome(options=options, service=service)
    yield started
    started.quit()


@pytest.fixture(scope="module", params=list(SIZES))
def opened(request, browser, page):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": SIZES[request.param], "height": 900, "deviceScaleFactor": 1, "mobile": request.param == "phone"},
    )
    browser.get(page.as_uri())
    return browser, request.param


def test_no_complaints(opened):
    browser, _ = opened
    assert browser.get_log("browser") == []
    assert "target from small.csv" in browser.title


def test_figures_are_there(opened):
    browser, _ = opened
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => {const r = s.getBoundingClientRect();"
        "return [r.width, r.height, s.querySelectorAll('text').length]})"
    )
    assert len(sizes) == 6
    for width, height, n_texts in sizes:
        assert width > 200
        assert height > 40
        assert n_texts > 0


def test_nothing_sticks_out(opened):
    """The page is as wide as the screen; what is wider scrolls in a box of its own."""
    browser, size = opened
    width = SIZES[size]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script(
        "return [...document.querySelectorAll('p, h1, h2, h3, li, figure, figcaption, .scroll, pre, nav, footer')]"
        ".filter(e => e.getBoundingClientRect().right > arguments[0] + 0.5 || e.getBoundingClientRect().left < 0)"
        ".map(e => e.outerHTML.slice(0, 80))",
        width,
    )
    assert outside == []


def test_legend_of_many_classes(browser, tmp_path):
    """On a phone: every entry lies inside of the page, its colour before its words, as high as their first line."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=270)
    names = ["short", *(f"a class with a name as long as those of real tables, number {i}" for i in range(8))]
    data, made = tmp_path / "many.csv", tmp_path / "many.html"
    labels = np.array(names)[np.argsort(np.argsort(x)) // 30]
    data.write_text("x,y\n" + "".join(f'{a:.3f},"{b}"\n' for a, b in zip(x, labels, strict=True)), encoding="utf-8")
    assert main(["report", str(data), "--target", "y", "-o", str(made), "--folds=2", "--quiet"]) == 0
    size = {"width": SIZES["phone"], "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(made.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= SIZES["phone"]
    entries = browser.execute_script(
        """
        return [...document.querySelectorAll('.legend > *')].map(e => {
          const words = document.createRange();
          words.selectNodeContents(e.lastChild);
          const [line] = words.getClientRects(), dot = e.querySelector('.dot').getBoundingClientRect();
          return {left: dot.left, right: e.getBoundingClientRect().right, gap: line.left - dot.right,
                  inside: line.top <= dot.top && dot.bottom <= line.bottom,
                  hanging: Math.min(...[...words.getClientRects()].map(r => r.left)) >= line.left - 0.5};
        })
        """
    )
    assert len(entries) == 8  # seven and the others
    margin = browser.execute_script("return document.querySelector('#tree p').getBoundingClientRect().left")
    assert margin > 0
    for entry in entries:
        assert entry["left"] >= margin - 0.5
        assert entry["right"] <= SIZES["phone"]
        assert 0 < entry["gap"] < 12
        assert entry["inside"]
        assert entry["hanging"]


def test_it_reads_well(opened):
    """Letters of at least 14 pixels in the text, dark on light, lines that are neither crammed nor endless."""
    browser, size = opened
    small = browser.execute_script(
        "return [...document.querySelectorAll('p, li, td, th, figcaption, summary, a, h1, h2, h3, pre')]"
        ".filter(e => parseFloat(getComputedStyle(e).fontSize) < 14).map(e => e.outerHTML.slice(0, 80))"
    )
    assert small == []
    colour, background, height = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor, parseFloat(s.lineHeight)]"
    )
    assert max(int(part) for part in colour[4:-1].split(",")) < 90
    assert background == "rgb(255, 255, 255)"
    assert height >= 22
    # what is drawn in charts: the font's size times how much the drawing is shrunk
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('svg')].map(s => {const k = s.getBoundingClientRect().width /"
        "s.viewBox.baseVal.width; return k * Math.min(...[...s.querySelectorAll('text')].map("
        "t => parseFloat(getComputedStyle(t).fontSize)))})"
    )
    assert min(drawn) >= (10 if size == "phone" else 12)


def test_texts_do_not_overlap(opened):
    """Labels of a drawing lie apart, and inside of it."""
    browser, _ = opened
    clashes = browser.execute_script(
        """
        const found = [];
        for (const svg of document.querySelectorAll('svg')) {
          const frame = svg.getBoundingClientRect();
          const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
          boxes.forEach(([a, r], i) => {
            if (r.left < frame.left - 1 || r.right > frame.right + 1) found.push(a + ' leaves the drawing');
            for (const [b, q] of boxes.slice(i + 1)) {
              const wide = Math.min(r.right, q.right) - Math.max(r.left, q.left);
              const high = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
              if (wide > 2 && high > 5) found.push(a + ' | ' + b);
            }
          });
        }
        return found;
        """
    )
    assert clashes == []


def test_links_and_details_work(opened):
    browser, _ = opened
    hidden = browser.execute_script(
        "const d = document.querySelector('#tree details'); const p = d.querySelector('pre');"
        "const before = p.checkVisibility(); d.querySelector('summary').click(); const after = p.checkVisibility();"
        "d.open = false; return [before, after]"
    )
    assert hidden == [False, True]
    browser.execute_script("document.querySelector('nav a[href=\"#columns\"]').click()")
    assert browser.current_url.endswith("#columns")


def test_screenshot(opened, tmp_path):
    browser, size = opened
    folder = Path(os.environ.get("KERNELRULES_SCREENSHOTS", tmp_path))
    shot = browser.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"format": "png", "captureBeyondViewport": True,
         "clip": {"x": 0, "y": 0, "width": SIZES[size], "height": 900, "scale": 1}},
    )  # fmt: skip
    path = folder / f"report_{size}.png"
    path.write_bytes(base64.b64decode(shot["data"]))
    assert path.stat().st_size > 10_000
