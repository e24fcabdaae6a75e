"""`unordinal serve`: what it refuses before it serves."""

import socket
import subprocess
import sys

import pytest
from conftest import Cli, refused


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--port", "0"], "between 1 and 65535, got 0"),
        (["--port", "99999"], "between 1 and 65535"),
        (["--workers", "0"], "between 1 and 64"),
        (["--host", "evil.example"], "--host takes an address"),
        (["nowhere"], "no run at nowhere"),
        (["pretrained:tex8"], "pretrained"),
    ],
)
def test_bad_arguments(cli: Cli, words: list[str], part: str) -> None:
    refused(cli("serve", *words), part)


def test_a_port_in_use_is_named(cli: Cli) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused(cli("serve", "--port", port), f"127.0.0.1:{port}", "--port takes another")


def test_without_the_extra_it_says_what_to_install() -> None:
    # In a process of its own: what it hides from the imports must not stay hidden from the tests after it.
    code = "import sys; sys.modules['starlette'] = None; from unordinal.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'unordinal[web]'" in done.stderr
    assert "Traceback" not in done.stderr
