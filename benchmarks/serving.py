"""How a server holds up: python benchmarks/serving.py

Starts `unordinal serve` with the models that come with the package and sends many requests at once, of three kinds in
turn. Prints how many were answered, refused because the queue was full, and failed, how long answers and refusals took
(median and 99th percentile), and the most memory that the server held.
"""

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from arguments import given

BODIES: list[tuple[str, dict[str, Any]]] = [
    ("bits", {"text": "paris is the capital of france and of the art of cooking"}),
    ("correct", {"text": "mexico citi the aztec stadium home of clup amerika", "method": "beam"}),
    ("sample", {"model": "pretrained:english-absorbing", "length": 24, "steps": 16}),
]


@dataclass(frozen=True)
class Args:
    at_once: int = 200
    """Requests that are sent at the same time."""
    rounds: int = 3
    """How often."""
    patient: bool = False
    """Send a request again after the time that a refusal names, until it is answered."""


def ask(port: int, path: str, body: dict[str, Any]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", f"/api/v1/{path}", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        return response.status
    except OSError:
        return 0
    finally:
        connection.close()


def peak_megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def main(args: Args) -> None:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "unordinal", "serve", "--quiet", "--port", str(port)])
    try:
        while ask(port, "bits", {"text": "the"}) != 200:
            time.sleep(0.2)
        before = peak_megabytes(server.pid)
        statuses: Counter[int] = Counter()
        times: dict[int, list[float]] = {}

        def one(number: int) -> None:
            path, body = BODIES[number % len(BODIES)]
            began = time.monotonic()
            while (status := ask(port, path, body)) == 429 and args.patient:
                time.sleep(5)
            statuses[status] += 1
            times.setdefault(status, []).append(time.monotonic() - began)

        began = time.monotonic()
        for _ in range(args.rounds):
            threads = [threading.Thread(target=one, args=(number,)) for number in range(args.at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        seconds = time.monotonic() - began
        print(f"{statuses.total()} requests, {args.at_once} at once, in {seconds:.1f} s")
        names = {200: "answered", 429: "refused, the queue was full", 0: "failed"}
        for status, found in sorted(times.items()):
            p50, p99 = np.percentile(found, (50, 99))
            name = names.get(status, f"status {status}")
            print(f"{len(found):>6} {name:<30} p50 {p50:6.2f} s   p99 {p99:6.2f} s")
        print(f"peak memory {peak_megabytes(server.pid):.0f} MB, {before:.0f} MB before")
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main(given(Args, __doc__))
