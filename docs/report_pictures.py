"""Take the screenshots of the report in _static with headless Chromium: `python docs/report_pictures.py [report.html]`.

Run it manually after the page has changed; building the documentation needs no browser. Without a page, the report on
Spambase is computed first. Requires selenium, Pillow, and Debian's chromium and chromium-driver or equivalents.
"""

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver

from kernelrules.report.cli import main

FOLDER = Path(__file__).parent / "_static"
PICTURES = {"report_desktop.png": (1000, 2150), "report_phone.png": (390, 1200)}  # width and height
COLOURS = 200


def take(page: Path) -> None:
    """Take both screenshots of a page."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for name, (width, height) in PICTURES.items():
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(page.resolve().as_uri())
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            shot = browser.execute_cdp_cmd(
                "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
            )
            picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
            few = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(FOLDER / name, optimize=True)
    finally:
        browser.quit()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        if not Path(sys.argv[1]).is_file():  # otherwise the screenshots would show the browser's error page
            sys.exit(f"there is no page {sys.argv[1]}\n\n{__doc__}")
        take(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "report.html")
            if main(["report", "-o", str(made)]) == 0:
                take(made)
