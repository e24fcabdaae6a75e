"""Pictures of chains, probabilities and spreads, and pages that hold all they show."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.data.tokens import TokenVocabulary
from unordinal.data.vocabularies import Vocabulary
from unordinal.evaluate.report import Report, chain_png, chain_rows, plot_pmf, plot_spread
from unordinal.evaluate.score import Score

TEXT = DataSpec("text", 27, (6,), Vocabulary.text8())
SCORE = Score(2.0, 0.1, "elbo", "test", 4, 1.0, "one pass", (1.0, 2.0, 2.0, 3.0), dimensions=2)


def chain_of(num: int) -> list[tuple[float, Tensor]]:
    x = torch.randint(27, (num, 6), generator=torch.Generator().manual_seed(0))
    return [(num - 1 - i, x[i]) for i in range(num)]


@pytest.mark.parametrize("num", [1, 2, 5, 12, 13, 1001])
def test_rows_of_a_chain_keep_its_ends_and_are_denser_towards_the_last(num: int) -> None:
    times = [t for t, _ in chain_rows(chain_of(num))]
    assert times[-1] == 0
    assert times[0] == num - 1
    assert len(times) <= 12
    assert times == sorted(set(times), reverse=True)
    if num == 1001:
        assert times == pytest.approx([1000 * (1 - i / 11) ** 1.5 for i in range(12)], abs=0.5)


def test_chains_probabilities_and_spreads_can_be_opened() -> None:
    assert Image.open(io.BytesIO(chain_png(chain_of(20), TEXT))).format == "PNG"
    pmf, samples = np.full((2, 2), 0.25), torch.tensor([[0, 1], [1, 1], [2, 0]])  # one with a code that means no class
    for plot in (lambda file: plot_pmf(pmf, SCORE, samples, file), lambda file: plot_spread(SCORE, file)):
        file = io.BytesIO()
        plot(file)
        assert Image.open(file).format == "PNG"


def test_tokens_stand_next_to_each_other() -> None:
    """A chain of tokens is as wide as the characters that they stand for."""
    tokens = TokenVocabulary.learned(["the frog and the toad " * 50], 280)
    x = tokens.encode("the frog and the toad")
    chain = [(1.0, torch.full_like(x, len(tokens))), (0.0, x)]
    letters = Vocabulary.text8().encode("the frog and the toad")
    wide = Image.open(io.BytesIO(chain_png(chain, DataSpec("tokens", len(tokens), (len(x),), tokens)))).size
    assert len(x) < len(letters)
    assert wide == Image.open(io.BytesIO(chain_png([(1.0, letters), (0.0, letters)], TEXT))).size


def test_a_page_holds_what_it_shows_and_nothing_of_it_is_markup() -> None:
    report = Report("Runs & <b>more</b>")
    report.heading("A < B")
    report.paragraph("x & y")
    report.code("<script>alert(1)</script>")
    report.table(("name", "value"), [("a<", "1"), ("b", "2&")])
    png = chain_png(chain_of(3), TEXT)
    report.picture(png, 'a "chain"')
    page = report.render().decode()
    assert page.startswith("<!doctype html>")
    assert "<title>Runs &amp; &lt;b&gt;more&lt;/b&gt;</title>" in page
    assert '<h2 id="part-1">A &lt; B</h2><p>x &amp; y</p><pre>&lt;script&gt;alert(1)&lt;/script&gt;</pre>' in page
    assert "<table><tr><th>name</th><th>value</th></tr><tr><td>a&lt;</td><td>1</td></tr>" in page
    (data,) = re.findall(r'alt="a &quot;chain&quot;" src="data:image/png;base64,([^"]*)"', page)
    assert base64.b64decode(data) == png
    assert not re.search(r"https?:|<script|<link", page)  # nothing is loaded from elsewhere


def test_a_long_page_lists_its_headings() -> None:
    short, long = Report("title"), Report("title")
    for name in "ab":
        short.heading(name)
    for name in "abcd":
        long.heading(name)
    assert "<li>" not in short.render().decode()
    assert '<li><a href="#part-4">d</a></li>' in long.render().decode()
