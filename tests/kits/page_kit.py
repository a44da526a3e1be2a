"""A page opened in a real browser, with all it complained about."""

from __future__ import annotations

BUSY_MS = 900_000  # far more than a busy machine needs


def open_page(browser, path, width=1280, scheme="light"):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(BUSY_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if not request.url.startswith("file://") else None)
    page.goto(f"file://{path}")
    page.problems = problems
    return page
