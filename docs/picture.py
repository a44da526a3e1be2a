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
        top = page.locator("#s2").bounding_box()["y"]
        page.locator("figure.chart svg circle[fill^='var']").nth(2).hover(force=True)
        clip = {"x": 0, "y": top, "width": 1120, "height": 780}
        page.screenshot(path=Path(__file__).with_name("report.png"), full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
