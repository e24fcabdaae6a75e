"""The wheel, in an environment of its own outside the repository, does what the README promises."""

import os
import socket
import subprocess
import sys
import tarfile
import time
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from documents import ROOT

import unordinal

EXTRAS = "tables,web"
ROWS = "age,job\n" + "".join(f"{20 + n % 40},{'cook' if n % 3 else 'smith'}\n" for n in range(300))


def test_the_version_is_the_same_everywhere() -> None:
    version = unordinal.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "CHANGELOG.md").read_text().startswith(f"# Changelog\n\n## {version}")


def test_every_supported_python_is_declared_and_tested_on_a_push() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [name.rpartition(" ")[2] for name in project["classifiers"] if ":: 3." in name]
    assert project["requires-python"] == f">={supported[0]}"
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    listed = ", ".join(f'"{version}"' for version in supported)
    assert f"python: [{listed}]" in workflow


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.mark.slow
def test_archives_hold_weights_licence_and_types_and_nothing_of_the_workshop(archives: tuple[Path, Path]) -> None:
    wheel, source = archives
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packed = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.safetensors")}
    assert packed
    assert packed | {"unordinal/py.typed", "unordinal/__init__.pyi", "unordinal/web/static/index.html"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("unordinal/", "unordinal-")) for name in names)
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "Makefile", "tests/contracts.py"} <= inside
    assert not any(name.startswith((".venv", "runs", "build", ".git/")) for name in inside)


@pytest.mark.slow
def test_an_installed_wheel_samples_corrects_fills_learns_a_table_and_serves(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python, command = tmp_path / "venv" / "bin" / "python", tmp_path / "venv" / "bin" / "unordinal"
    install = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*install, f"{archives[0]}[{EXTRAS}]"], cwd=tmp_path, check=True, timeout=1800)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(command), *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
            timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    found = subprocess.run(
        [str(python), "-c", "import unordinal; print(unordinal.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.startswith(str(tmp_path))
    assert run("--version").split() == ["unordinal", unordinal.__version__]
    assert run("sample", "pretrained:molecules", "--num", "3", "--label", "rings=3").strip()
    run("sample", "pretrained:landcover", "--num", "2", "--steps", "8", "--grid", "maps.png")
    assert (tmp_path / "maps.png").stat().st_size > 1000
    assert "beginning to receive" in run("correct", "The goverment was begining to recieve leters")
    assert " of the city was destroyed" in run("fill", "the ____ of the city was destroyed by the romans")
    (tmp_path / "people.csv").write_text(ROWS)
    run("train", "arm", "--data", "people.csv", "--steps", "60", "--out", "people")
    run("sample", "people", "--num", "5", "--where", "job=cook", "--out", "new.csv")
    rows = (tmp_path / "new.csv").read_text().splitlines()
    assert rows[0] == "age,job"
    assert len(rows) == 6
    assert all(row.endswith(",cook") for row in rows[1:])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([str(command), "serve", "--port", str(port)], cwd=tmp_path, env=environment) as server:
        try:
            page = first_answer(f"http://127.0.0.1:{port}/", server)
        finally:
            server.terminate()
    assert "<title>unordinal" in page


def first_answer(url: str, server: "subprocess.Popen[bytes]") -> str:
    """Ask until the server answers."""
    for _ in range(120):
        assert server.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server did not answer within a minute")
