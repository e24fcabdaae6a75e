"""Model cards, and what `Run.save` writes."""

from pathlib import Path

from unordinal.api import load


def test_a_saved_run_has_a_card_with_metadata_and_loads_again(trained: Path, tmp_path: Path) -> None:
    run = load(trained)
    run.save(tmp_path / "copy", licence="mit")
    files = sorted(path.name for path in (tmp_path / "copy").iterdir())
    assert files == ["README.md", "config.json", "model.safetensors"]
    card = (tmp_path / "copy" / "README.md").read_text()
    assert card.startswith(
        "---\nlibrary_name: unordinal\nlicense: mit\npipeline_tag: text-generation\ntags:\n- unordinal\n"
    )
    assert "27 classes, examples of 32" in card
    assert f"{run.folder.published_bits:.4f} bits per character" in card
    assert str(trained.parent) not in card
    assert load(tmp_path / "copy").sample(2, seed=1) == run.sample(2, seed=1)


def test_a_model_in_the_box_keeps_its_own_card(tmp_path: Path) -> None:
    load("pretrained:text8-arm").save(tmp_path / "copy", licence="cc-by-sa-4.0")
    card = (tmp_path / "copy" / "README.md").read_text()
    assert "license: cc-by-sa-4.0" in card
    assert "Wikipedia" in card
    again = load(tmp_path / "copy")
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "README.md").read_text() == card
