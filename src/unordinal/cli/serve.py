"""`unordinal serve [RUN...]`."""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import progress, say
from unordinal.names import counted
from unordinal.pretrained import PREFIX, PRETRAINED
from unordinal.settings import Checked, Flag, Range

if TYPE_CHECKING:
    from unordinal.api import Run


LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ServeArgs(MachineArgs, Checked):
    """Serve a page on which text emerges, is corrected, filled and measured, and the same as a JSON API.

    Without a run, the bundled models are served. The server answers on this machine only, unless --host says otherwise.

    Examples:
        unordinal serve
        unordinal serve runs/book runs/diffusion --port 9000
    """

    FIRST: ClassVar = ("port", "host", "workers")
    runs: Annotated[tuple[str, ...], POSITIONAL, Flag(metavar="RUN")] = ()
    """Runs to serve; default the bundled models."""
    port: Annotated[int, Range(1, 65_535)] = 8000
    """The port."""
    host: str = "127.0.0.1"
    """The address to listen on. Anyone who can reach it can use the server: it has no passwords."""
    name: tuple[str, ...] = ()
    """Further names by which browsers may call the server, such as example.org; needed with --host."""
    workers: Annotated[int, Range(1, 64)] = 4
    """How many requests are worked on at a time."""
    quiet: bool = False
    """Print no line for each request."""


def main(words: Words) -> int:
    args = parse(words, ServeArgs)
    check_host(args.host)
    try:
        from unordinal.web.app import Limits, make_app
        from unordinal.web.server import serve
    except ModuleNotFoundError as error:
        raise ValueError(
            f"serving needs the package {error.name}; install it with: pip install 'unordinal[web]'"
        ) from error
    check_port(args.host, args.port)
    import torch

    device = args.chosen_device()
    if args.threads is None and args.workers > 1:
        torch.set_num_threads(1)  # requests side by side would only wait for each other's threads
    runs = loaded(args.runs, device)
    hosts = frozenset(name.lower() for name in (*LOCAL_NAMES, *args.name, args.host))
    app = make_app(
        runs, hosts=hosts, limits=Limits(workers=args.workers), log=(lambda _line: None) if args.quiet else say
    )
    for name, run in runs.items():
        if run.spec.num_values and not name.startswith(PREFIX):
            say(f"Note: {name} tells {counted(run.spec.num_values, 'value')} of its data, such as names of categories.")
    if args.host not in LOCAL_NAMES:
        say(f"Warning: anyone who can reach {args.host} can use this server; it has no passwords.")
    say(f"Serving {counted(len(runs), 'model')} at http://{in_address(args.host)}:{args.port}; Ctrl-C stops.")
    serve(app, args.host, args.port)
    say("Stopped.")
    return 0


def check_host(host: str) -> None:
    """Raise a ValueError if a host is not an address."""
    if host != "localhost":
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise ValueError(f"--host takes an address such as 127.0.0.1 or 0.0.0.0, got {host!r}") from None


def check_port(host: str, port: int) -> None:
    """Raise a ValueError if an address cannot be listened on, before the models are loaded."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            raise ValueError(f"cannot listen on {host}:{port}: {error.strerror}; --port takes another") from error


def loaded(references: tuple[str, ...], device: object) -> "dict[str, Run]":
    """Load the runs, each under a name of its own."""
    from unordinal.api import load

    chosen = list(references) or [f"{PREFIX}{name}" for name in PRETRAINED]
    runs: dict[str, Run] = {}
    with progress("Loading models", len(chosen)) as advance:
        for path in chosen:
            name = path if path.startswith(PREFIX) else Path(path).resolve().name
            again = sum(known == name or known.startswith(f"{name}-") for known in runs)
            name = f"{name}-{again + 1}" if name in runs else name
            runs[name] = load(path, device=device)  # type: ignore[arg-type]
            advance(1)
    return runs


def in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
