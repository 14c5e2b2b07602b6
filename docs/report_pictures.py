"""Make the pictures of the report in _static, by headless Chromium: `python docs/report_pictures.py [report.html]`.

By hand, where the page has changed: building the documentation needs no browser. Without a page the report on Spambase
is made first. Needs selenium, Pillow, and Debian's chromium and chromium-driver or their like.
"""

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver

from kernelrules.cli import main

FOLDER = Path(__file__).parent / "_static"
PICTURES = {"report_desktop.png": (1000, 2150), "report_phone.png": (390, 1200)}  # width and height
COLOURS = 200


def take(page: Path) -> None:
    """Both pictures of a page."""
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
        if not Path(sys.argv[1]).is_file():  # or the pictures would be of the browser's complaint
            sys.exit(f"there is no page {sys.argv[1]}\n\n{__doc__}")
        take(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "report.html")
            if main(["report", "-o", str(made)]) == 0:
                take(made)
