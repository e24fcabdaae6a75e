"""The Hugging Face hub, by a stand-in for its HTTP API on this machine."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from unordinal.api import fit
from unordinal.pretrained.hub import check_name, fetched, is_hub

pytest.importorskip("huggingface_hub")
COMMIT = "a" * 40


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as making, filling and reading a model needs. Files are kept by model and name."""

    files: dict[str, dict[str, bytes]] = {}  # noqa: RUF012

    def log_message(self, *_args: Any) -> None:
        pass

    def answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self.path.strip("/").split("/")
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.files.setdefault(name, {})
            self.answer({"url": f"http://{self.headers['Host']}/{name}"})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "preupload" in parts:
            asked = json.loads(body)["files"]
            self.answer({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]})
        elif "commit" in parts:
            name = "/".join(parts[2:4])
            for line in body.decode().splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    self.files[name][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            url = f"http://{self.headers['Host']}/{name}/commit/{COMMIT}"
            self.answer({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})
        else:
            self.answer({"error": "unknown"}, 404)

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("?")[0].split("/")
        if parts[0] == "api":
            name = "/".join(parts[2:4])
            siblings = [{"rfilename": file} for file in self.files.get(name, {})]
            self.answer(
                {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False}
            )
            return
        name, file = "/".join(parts[:2]), "/".join(parts[4:])
        if name not in self.files:
            self.answer(b"", 404, {"X-Error-Code": "RepoNotFound"})
        elif file not in self.files[name]:
            self.answer(b"", 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        else:
            body = self.files[name][file]
            tag = hashlib.sha256(body).hexdigest()
            self.answer(body, 200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "none"})

    do_HEAD = do_GET  # noqa: N815


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def python(code: str, hub: str, home: Path) -> "subprocess.CompletedProcess[str]":
    """Run Python in a process that knows the stand-in only."""
    env = {**os.environ, "HF_ENDPOINT": hub, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "hf_x"}
    env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_a_run_goes_to_the_hub_and_comes_back(hub: str, trained: Path, tmp_path: Path) -> None:
    sent = python(
        f"import unordinal; run = unordinal.load({str(trained)!r}); "
        "print(run.push_to_hub('me/fox', licence='mit')); print(run.sample(2, seed=3))",
        hub,
        tmp_path / "a",
    )
    assert sent.returncode == 0, sent.stderr
    assert set(Hub.files["me/fox"]) == {"README.md", "config.json", "model.safetensors"}
    assert b"license: mit" in Hub.files["me/fox"]["README.md"]
    Hub.files["me/fox"]["evil.py"] = b"print('never fetched')"
    back = python("import unordinal; print(unordinal.load('hf:me/fox').sample(2, seed=3))", hub, tmp_path / "b")
    assert back.returncode == 0, back.stderr
    assert back.stdout.strip() == sent.stdout.strip().splitlines()[-1]
    assert not list((tmp_path / "b").rglob("*.py"))
    offline = python(
        "import sys; from unordinal.cli import run; sys.exit(run(['sample', 'hf:me/fox', '--num', '1']))",
        "http://127.0.0.1:9",
        tmp_path / "b",
    )
    assert offline.returncode == 0, offline.stderr  # what is in the cache needs no hub


@pytest.mark.parametrize(
    ("name", "endpoint", "part"),
    [
        ("hf:me/nothing", None, "there is no model hf:me/nothing"),
        ("hf:me/bare", None, "is not a model of unordinal: expected config.json and model.safetensors"),
        pytest.param(
            *("hf:me/fox2", "http://127.0.0.1:9", "cannot be fetched, and is not in the cache"), marks=pytest.mark.slow
        ),
    ],
)
def test_what_cannot_be_fetched_is_one_line(
    hub: str, name: str, endpoint: str | None, part: str, tmp_path: Path
) -> None:
    Hub.files["me/bare"] = {"README.md": b"nothing else"}
    code = f"import sys; from unordinal.cli import run; sys.exit(run(['sample', {name!r}]))"
    result = python(code, endpoint or hub, tmp_path)
    assert result.returncode == 2, result.stderr
    assert part in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["fox", "me/fox/cub", "../me/fox", "me/..", "me/fox\nx", "/me/fox", ""])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    assert is_hub(f"hf:{name}")
    with pytest.raises(ValueError, match="expected a model of the hub as owner/name"):
        fetched(f"hf:{name}")


def test_good_names() -> None:
    for name in ("me/fox", "me-2/fox_1.5"):
        check_name(name)


def test_values_of_the_data_are_sent_only_if_the_user_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fit("chow-liu", "cafe", num_rows=300, progress=False)
    with pytest.raises(ValueError, match=r"holds \d+ values of the data, .* give `publish_values` to agree"):
        run.push_to_hub("owner/name")
    run.save(tmp_path / "run")
    assert f"{run.spec.num_values:,}" in (tmp_path / "run" / "README.md").read_text()
    assert f"tells {run.spec.num_values:,} values of the data" in capsys.readouterr().err
