"""A report of every kind of part, as Markdown and as a page."""

import io

from PIL import Image

from unordinal.reproduce.parts import Code, Grid, Heading, Paragraph, Part, Picture, as_markdown, as_page


def dot() -> bytes:
    """Return a PNG of one pixel."""
    buffer = io.BytesIO()
    Image.new("RGB", (1, 1)).save(buffer, "png")
    return buffer.getvalue()


PARTS: list[Part] = [
    Heading("Section"), Paragraph("A < B."), Grid((("model", "bits"), [("arm", "1.5")])),
    Code(("unordinal train arm",)), Picture("dot", "A dot", dot),
]  # fmt: skip


def test_markdown_has_every_part_and_names_pictures_if_asked() -> None:
    text = as_markdown("Title", PARTS)
    assert text == (
        "# Title\n\n## Section\n\nA < B.\n\n| model | bits |\n| --- | --- |\n| arm | 1.5 |\n\n    unordinal train arm\n"
    )
    assert as_markdown("Title", PARTS, has_pictures=True) == f"{text}\n![A dot](dot.png)\n"


def test_a_page_has_every_part_with_its_pictures_inside() -> None:
    text = as_page("Title", PARTS).decode()
    assert '<h2 id="part-1">Section</h2>' in text
    assert "<p>A &lt; B.</p>" in text
    assert "<pre>unordinal train arm</pre>" in text
    assert text.count("data:image/png;base64,") == 1
