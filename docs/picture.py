"""Makes docs/report.png: the demonstration's report, as Chromium shows it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def main(report: str) -> None:
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=quiet)
        page = browser.new_context(viewport={"width": 1120, "height": 900}, color_scheme="light").new_page()
        page.goto(Path(report).resolve().as_uri())
        bottom = page.locator("#s1 figure.charts").bounding_box()["y"]  # of the table and the sentences under it
        clip = {"x": 0, "y": 0, "width": 1120, "height": bottom}
        page.screenshot(path=Path(__file__).with_name("report.png"), full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
