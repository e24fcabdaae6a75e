"""Every panel of the page, used as a person would, in a real browser; skipped where there is none."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test-web` installs it")
WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}
SHOTS = os.environ.get("UNORDINAL_SCREENSHOTS")  # a folder to write pictures of the panels to

Opener = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, server: Any) -> Opener:
    """Open the page; no error on its console, and no request that leaves the machine, is let through."""

    @contextmanager
    def open_page(size: str = "desktop", scheme: str = "light", address: str = "", expected: str = "") -> Iterator[Any]:
        width, height = WIDTHS[size]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(60_000)
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(server.url) else wrong.append(asked.url))
        page.goto(server.url + address)
        page.wait_for_selector("body[data-ready]")
        yield page
        context.close()
        assert [text for text in wrong if not expected or expected not in text] == []

    return open_page


def status(page: Any, panel: str, part: str) -> None:
    """Wait until a panel says something."""
    page.wait_for_function(
        "([panel, part]) => document.querySelector(`#${panel} .status`).textContent.includes(part)", arg=[panel, part]
    )


def panel_of(page: Any, panel: str) -> Any:
    """Show a panel, wait for its example, and return it."""
    page.locator(f'[role="tab"][data-panel="{panel}"]').click()
    page.wait_for_function(
        """panel => {
          const box = document.getElementById(panel);
          return !box.hidden && box.dataset.used === 'true' && box.dataset.busy === 'false';
        }""",
        arg=panel,
    )
    return page.locator(f"#{panel}")


def shot(page: Any, panel: str, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.locator(f"#{panel}").screenshot(path=str(Path(SHOTS) / f"{name}.png"))


NUM_ERRORS = 6  # of the panel's example that the model mends
LOOKS = [
    ("phone", "dark"),
    pytest.param("desktop", "light", marks=pytest.mark.slow),
    pytest.param("phone", "light", marks=pytest.mark.slow),
    pytest.param("desktop", "dark", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_text_emerges(opened: Opener, size: str, scheme: str) -> None:
    with opened(size, scheme) as page:
        panel = panel_of(page, "emerge")
        panel.get_by_label("Steps").fill("12")
        panel.get_by_role("spinbutton", name="Tokens").fill("40")
        panel.get_by_role("button", name="Draw", exact=True).click()
        status(page, "emerge", "12 network calls")
        assert panel.locator('[data-role="view"] span').count() == 40
        assert panel.locator('[data-role="view"] .settled').count() == 40
        slider = panel.get_by_label("Step", exact=True)
        slider.fill("0")
        assert panel.locator('[data-role="view"]').inner_text() == "·" * 40
        assert panel.locator('[data-role="view"] .noise').count() == 40
        slider.fill("6")
        shot(page, "emerge", f"emerge-{size}-{scheme}")
        panel.get_by_role("button", name="Play").click()
        page.wait_for_function("() => document.querySelector('#emerge [name=step]').value === '12'")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_first_frame_comes_within_a_second(opened: Opener) -> None:
    with opened() as page:
        panel_of(page, "emerge")
        seconds = page.evaluate(
            """async () => {
              const began = performance.now();
              document.querySelector('#emerge [data-role=view]').replaceChildren();
              document.querySelector('#emerge form').requestSubmit();
              const isThere = () => document.querySelector('#emerge [data-role=view] span');
              while (!isThere()) { await new Promise(requestAnimationFrame); }
              return (performance.now() - began) / 1000;
            }"""
        )
        assert seconds < 1.0


def test_a_link_shows_the_same_again(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "emerge")
        panel.get_by_label("Steps").fill("8")
        panel.get_by_role("spinbutton", name="Tokens").fill("24")
        panel.get_by_label("Seed").fill("77")
        panel.get_by_role("button", name="Draw").click()
        status(page, "emerge", "8 network calls")
        text, address = panel.locator('[data-role="view"]').inner_text(), page.url
    with opened(address=address.partition("/#")[2] and "#" + address.partition("/#")[2]) as page:
        status(page, "emerge", "8 network calls")
        assert page.locator('#emerge [data-role="view"]').inner_text() == text


def test_more_steps_than_letters_are_as_many_as_letters(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "emerge")
        panel.get_by_role("spinbutton", name="Tokens").fill("10")
        panel.get_by_role("button", name="Draw", exact=True).click()
        status(page, "emerge", "10 network calls")
        assert panel.get_by_label("Steps").input_value() == "10"


def test_another_one_begins_anew_while_one_runs(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "emerge")
        panel.get_by_role("button", name="Draw", exact=True).click()
        page.wait_for_selector("#emerge [data-role=view] span")
        panel.get_by_role("spinbutton", name="Tokens").fill("16")
        panel.get_by_role("button", name="Another one").click()
        status(page, "emerge", "16 network calls")
        assert panel.locator('[data-role="view"] .settled').count() == 16


def test_what_was_not_read_is_said(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "bits")
        panel.locator("textarea").fill("Zürich, 1984")
        panel.get_by_role("button", name="Measure").click()
        status(page, "bits", "everything else (digits, commas, line ends) as spaces")
        panel.get_by_label("Model").select_option("pretrained:text8-uniform")
        panel.get_by_role("button", name="Measure").click()
        status(page, "bits", "it has none for single letters")


def test_an_empty_text_is_not_sent(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "correct")
        panel.locator("textarea").fill("")
        panel.get_by_role("button", name="Correct", exact=True).click()
        assert panel.locator("textarea").evaluate("field => field.validity.valueMissing")
        assert "accepted" in panel.locator(".status").inner_text()  # of the example


def test_drawing_can_be_stopped(opened: Opener, server: Any) -> None:
    with opened() as page:
        panel = panel_of(page, "emerge")
        panel.get_by_label("Model").select_option("pretrained:text8-uniform")
        panel.get_by_label("Steps").fill("1000")
        panel.get_by_role("button", name="Draw").click()
        page.wait_for_selector("#emerge [data-role=view] span")
        panel.get_by_role("button", name="Stop").click()
        status(page, "emerge", "Stopped.")
        page.wait_for_timeout(1000)
        assert server.ask("/healthz").json["jobs"] == 0


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_a_text_is_corrected(opened: Opener, size: str, scheme: str) -> None:
    with opened(size, scheme) as page:
        panel = panel_of(page, "correct")
        panel.get_by_role("button", name="Correct", exact=True).click()
        status(page, "correct", f"{NUM_ERRORS} suggestions, {NUM_ERRORS} accepted")
        marks = panel.locator(".suggestion")
        assert marks.count() == NUM_ERRORS
        marks.nth(1).hover()
        assert "confidence" in panel.locator('[data-role="detail"]').inner_text()
        shot(page, "correct", f"correct-{size}-{scheme}")
        marks.nth(0).click()
        assert marks.nth(0).get_attribute("aria-pressed") == "false"
        status(page, "correct", f"{NUM_ERRORS} suggestions, {NUM_ERRORS - 1} accepted")
        panel.get_by_role("button", name="Reject all").click()
        assert panel.locator('.suggestion[aria-pressed="true"]').count() == 0
        panel.locator("textarea").fill("Élan vital 😀: the population of the united ststes")
        panel.get_by_role("button", name="Correct", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('#correct .suggestion').length === 1")
        assert panel.locator('[data-role="view"]').inner_text().startswith("Élan vital 😀: the population")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_gaps_are_filled(opened: Opener, size: str, scheme: str) -> None:
    with opened(size, scheme) as page:
        panel = panel_of(page, "fill")
        panel.get_by_label("Proposals").fill("3")
        panel.get_by_role("button", name="Fill", exact=True).click()
        status(page, "fill", "3 proposals")
        first = panel.locator("li button").first
        text = first.inner_text()
        assert text.startswith("the ")
        assert "_" not in text
        shot(page, "fill", f"fill-{size}-{scheme}")
        first.click()
        assert panel.get_by_label("Text with gaps").input_value() == text
        panel.get_by_role("button", name="Back to the gaps").click()
        assert "____" in panel.get_by_label("Text with gaps").input_value()


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_surprise_is_measured(opened: Opener, size: str, scheme: str) -> None:
    with opened(size, scheme) as page:
        panel = panel_of(page, "bits")
        panel.get_by_role("button", name="Measure").click()
        status(page, "bits", "56 letters")
        cells = panel.locator(".cells li")
        assert cells.count() == 56
        total = sum(float(text) for text in panel.locator(".cells small").all_inner_texts())
        assert total == pytest.approx(float(panel.locator("h3").inner_text().split()[0]), abs=3)
        shot(page, "bits", f"bits-{size}-{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_a_map_is_drawn_erased_and_filled(opened: Opener, size: str, scheme: str) -> None:
    with opened(size, scheme) as page:
        panel = panel_of(page, "maps")
        panel.get_by_label("Steps").fill("8")
        panel.get_by_role("button", name="Draw a map").click()
        status(page, "maps", "8 network calls")
        panel.get_by_label("Height").fill("4")
        panel.get_by_role("button", name="Erase").click()
        status(page, "maps", "32 pixels erased")
        box = panel.locator("canvas").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.6)
        page.mouse.up()
        panel.get_by_role("button", name="Fill", exact=True).click()
        status(page, "maps", "4 proposals")
        assert panel.locator(".pictures canvas").count() == 4
        shot(page, "maps", f"maps-{size}-{scheme}")
        panel.get_by_role("button", name="Put proposal 2 into the map").click()
        assert panel.get_by_role("button", name="Fill", exact=True).is_disabled()
        panel.get_by_role("button", name="Undo").click()
        assert panel.get_by_role("button", name="Fill", exact=True).is_enabled()
        panel.get_by_label("Top").fill("99")
        panel.get_by_role("button", name="Erase").click()
        status(page, "maps", "outside the map, which has 32 rows and 64 columns")


def test_lines_are_drawn_with_a_label(opened: Opener) -> None:
    with opened("phone") as page:
        panel = panel_of(page, "lines")
        panel.get_by_label("rings").select_option("3")
        panel.get_by_label("Guidance").fill("2")
        panel.get_by_role("button", name="Draw lines").click()
        status(page, "lines", "12 lines")
        assert panel.locator(".lines li").count() == 12
        assert 'label=("rings=3",), guidance=2' in panel.locator('[data-role="python"]').text_content()
        shot(page, "lines", "lines-phone-light")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_rows_are_drawn_with_a_condition(opened: Opener) -> None:
    with opened("phone") as page:
        panel = panel_of(page, "rows")
        panel.get_by_label("Conditions").fill("weather=hot; drink=tea")
        panel.get_by_role("button", name="Draw rows").click()
        page.wait_for_function("() => document.querySelector('#rows [data-role=python]').textContent.includes('hot')")
        names = panel.locator("th").all_inner_texts()
        cells = panel.locator("td").all_inner_texts()
        assert len(cells) == 10 * len(names)
        assert set(cells[names.index("weather") :: len(names)]) == {"hot"}
        assert set(cells[names.index("drink") :: len(names)]) == {"tea"}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", cell) for cell in cells[names.index("day") :: len(names)])
        shot(page, "rows", "rows-phone-light")


def test_the_keyboard_alone_is_enough(opened: Opener) -> None:
    with opened() as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.locator("#emerge-tab").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "correct-tab"
        panel_of(page, "correct")
        page.locator("#correct textarea").focus()
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("the united ststes")
        for _ in range(4):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Correct"
        page.keyboard.press("Enter")
        status(page, "correct", "1 suggestion, 1 accepted")
        for _ in range(2):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "suggestion"
        assert "confidence" in page.locator('#correct [data-role="detail"]').inner_text()
        page.keyboard.press("Space")
        assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_axe_finds_nothing(opened: Opener, size: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(size, scheme) as page:
        for panel in ("emerge", "correct", "fill", "bits", "maps"):
            panel_of(page, panel)
            page.locator(f"#{panel} .code summary").click()
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
    with opened(size, scheme, "docs") as page:
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_a_request_takes_the_place_of_the_example(opened: Opener) -> None:
    with opened() as page:
        page.locator('[role="tab"][data-panel="correct"]').click()
        panel = page.locator("#correct")
        panel.locator("textarea").fill("the goverment")
        panel.get_by_role("button", name="Correct").click()
        status(page, "correct", "1 suggestion")
        assert panel.locator('[data-role="view"]').inner_text() == "the govermentgovernment"


def test_an_error_is_one_sentence_on_the_page(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "fill")
        panel.get_by_label("Text with gaps").fill("nothing is missing")
        panel.get_by_role("button", name="Fill", exact=True).click()
        status(page, "fill", "the text has no gap")
        assert panel.locator(".status.error").count() == 1


def test_the_request_is_shown_as_a_command_and_in_python(opened: Opener) -> None:
    with opened() as page:
        panel = panel_of(page, "bits")
        panel.locator("textarea").fill("it's so")
        panel.get_by_role("button", name="Measure").click()
        status(page, "bits", "7 letters")
        panel.locator(".code summary").click()
        command = panel.locator('[data-role="curl"]').inner_text()
        found = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True)
        assert json.loads(found.stdout)["lines"][0]["text"] == "it's so"
        assert 'run.bits(("it\'s so",))' in panel.locator('[data-role="python"]').inner_text()


def test_the_docs_list_every_request(opened: Opener) -> None:
    with opened(address="docs") as page:
        page.wait_for_selector("section")
        assert page.locator("section").count() == 8
        assert "POST /api/v1/correct" in page.content()
