"""Train, kill, resume, evaluate, sample and serve in a loop, and compare with what an undisturbed run finds.

    python tests/soak.py --minutes 60

It prints the faults that were injected, the runs that differ from an undisturbed one afterwards, the tracebacks that
anything printed, and how the memory of a server and of a long training grew. The exit code is 0 if nothing differed.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = 400
TEXT = "it is a truth universally acknowledged that a single man in possession of a good fortune " * 80
MODELS = {
    "arm": ["arm", "--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"],
    "absorbing": ["absorbing", "--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"],
}
COMMON = ["--length", "16", "--batch-size", "4", "--accumulate", "2", "--validate-examples", "4", "--optim.ema", "0.9"]
COMMON += ["--validate-every", "100", "--checkpoint-every", "10", "--steps", str(STEPS), "--keep", "last"]
WARM_UP = 0.25  # the part of the time whose memory does not count


@dataclass
class Findings:
    """What a soak has found so far."""

    faults: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    runs: int = 0
    requests: int = 0
    memory: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # seconds and megabytes

    def heard(self, what: str, output: str) -> None:
        if "Traceback (most recent call last)" in output and "torch/distributed/elastic" not in output:
            self.tracebacks.append(f"{what}: {output[-1500:]}")


def command(*words: str, processes: int = 1) -> list[str]:
    if processes == 1:
        return [sys.executable, "-m", "unordinal", *words]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "--"]
    return [sys.executable, *launcher, "unordinal", *words]


def started(words: list[str], limit: int | None = None) -> "subprocess.Popen[str]":
    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(words, env=env, start_new_session=True, preexec_fn=limited, **pipes)  # noqa: PLW1509


def finished(what: str, words: list[str], found: Findings, *, codes: tuple[int, ...] = (0,)) -> str:
    process = started(words)
    output, _ = process.communicate(timeout=600)
    found.heard(what, output)
    if process.returncode not in codes:
        found.differing.append(f"{what}: exit code {process.returncode}: {output[-500:]}")
        say(found.differing[-1])
    return output


def training(kind: str, book: Path, out: Path) -> list[str]:
    return ["train", *MODELS[kind], *COMMON, "--data", str(book), "--out", str(out), "--resume"]


def results(out: Path, found: Findings) -> dict[str, Any]:
    """What a finished run has learned: losses, validations, its score and samples."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    kept = [{key: line.get(key) for key in ("step", "loss", "val_bits_per_dim")} for line in lines]
    score = finished("evaluate", command("evaluate", str(out), "--num-examples", "4", "--json"), found)
    sample = finished("sample", command("sample", str(out), "--num", "2", "--json", "--seed", "3"), found)
    bits, texts = said(score).get("bits_per_dim", score), said(sample).get("samples", sample)
    return {"metrics": kept, "weights": (out / "model.safetensors").read_bytes(), "bits": bits, "samples": texts}


def said(output: str) -> dict[str, Any]:
    """The JSON object that a command ends with; empty if it ends otherwise."""
    try:
        return dict(json.loads(output.splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        return {}


def newest_state(out: Path) -> Path | None:
    return max(out.glob("checkpoints/step-*/state.pt"), default=None)


def kill_all(process: "subprocess.Popen[str]", _out: Path) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def kill_one(process: "subprocess.Popen[str]", _out: Path) -> None:
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    for child in children.stdout.split()[-1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)


def terminate(process: "subprocess.Popen[str]", _out: Path) -> None:
    process.send_signal(signal.SIGTERM)


def interrupt(process: "subprocess.Popen[str]", _out: Path) -> None:
    process.send_signal(signal.SIGINT)


def flip_a_bit(process: "subprocess.Popen[str]", out: Path) -> None:
    kill_all(process, out)
    process.wait()
    state = newest_state(out)
    if state is not None and len(list(out.glob("checkpoints/step-*/state.pt"))) > 1:
        raw = bytearray(state.read_bytes())
        raw[len(raw) // 3] ^= 4
        state.write_bytes(raw)


def truncate(process: "subprocess.Popen[str]", out: Path) -> None:
    kill_all(process, out)
    process.wait()
    state = newest_state(out)
    if state is not None and len(list(out.glob("checkpoints/step-*/state.pt"))) > 1:
        state.write_bytes(state.read_bytes()[:2000])


def damage_weights(process: "subprocess.Popen[str]", out: Path) -> None:
    kill_all(process, out)
    process.wait()
    if (out / "model.safetensors").exists():
        (out / "model.safetensors").write_bytes(b"damaged")


@dataclass(frozen=True)
class Fault:
    name: str
    inject: Callable[["subprocess.Popen[str]", Path], None]
    processes: int = 1
    limit: int | None = None  # of the size of files, which stands in for a full disk


FAULTS = [
    Fault("kill -9", kill_all),
    Fault("kill -9 of one process of two", kill_one, processes=2),
    Fault("kill -9 of torchrun", kill_all, processes=2),
    Fault("SIGTERM", terminate),
    Fault("SIGTERM of two processes", terminate, processes=2),
    Fault("SIGINT", interrupt),
    Fault("kill -9, and a flipped bit in the checkpoint", flip_a_bit),
    Fault("kill -9, and a truncated checkpoint", truncate),
    Fault("kill -9, and damaged weights", damage_weights),
    Fault("full disk", lambda _process, _out: None, limit=20_000),
]


def disturbed(kind: str, book: Path, out: Path, rng: random.Random, found: Findings) -> None:
    """Train a run under faults until it is finished."""
    for fault in rng.sample(FAULTS, 4):
        words = training(kind, book, out)
        process = started(command(*words, processes=fault.processes), fault.limit)
        before = newest_state(out)
        began, is_early = time.monotonic(), rng.random() < 0.2  # some faults come before there is anything to save
        patience = rng.uniform(0.0, 6.0) if is_early else 60.0
        while process.poll() is None and time.monotonic() - began < patience and newest_state(out) == before:
            time.sleep(0.02)
        time.sleep(0.0 if is_early else rng.uniform(0.0, 0.5))
        if process.poll() is None or fault.limit is not None:
            fault.inject(process, out)
            found.faults[fault.name] += 1
        output, _ = process.communicate(timeout=300)
        found.heard(fault.name, output)
    finished("resume", command(*training(kind, book, out)), found)


def megabytes(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in fields if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return None


def watched(name: str, process: "subprocess.Popen[str]", found: Findings, stop: threading.Event) -> None:
    began = time.monotonic()
    while not stop.wait(5) and process.poll() is None:
        held = megabytes(process.pid)
        if held is not None:
            found.memory.setdefault(name, []).append((time.monotonic() - began, held))


def asked(port: int, found: Findings, stop: threading.Event) -> None:
    """Ask the server for corrections and fillings until it is enough."""
    bodies = {"bits": {"text": "the history of the city"}, "correct": {"text": "the histori of the citi"}}
    while not stop.wait(2):
        for name, body in bodies.items():
            headers = {"content-type": "application/json"}
            address = f"http://127.0.0.1:{port}/api/v1/{name}"
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    answer.read()
                found.requests += 1
            except OSError:
                if not stop.is_set():
                    found.faults["request while the server was busy or gone"] += 1


def slope(points: list[tuple[float, float]]) -> float | None:
    """Megabytes per hour by least squares, after the warm-up."""
    kept = points[int(len(points) * WARM_UP) :]
    if len(kept) < 3:
        return None
    times, values = [t / 3600 for t, _ in kept], [v for _, v in kept]
    mean_t, mean_v = sum(times) / len(times), sum(values) / len(values)
    above = sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values, strict=True))
    return above / sum((t - mean_t) ** 2 for t in times)


@contextlib.contextmanager
def beside(folder: Path, book: Path, minutes: float, found: Findings) -> Iterator[None]:
    """A server that is asked all the time, and a long training, both of whose memory is watched."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    quiet["env"] = {**os.environ, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command("serve", "--port", str(port), "--quiet"), **quiet)
    words = ["train", *MODELS["arm"], "--length", "64", "--data", str(book), "--out", str(folder / "long")]
    trainer = subprocess.Popen(command(*words, "--minutes", f"{min(30.0, 0.9 * minutes):g}"), **quiet)
    stop = threading.Event()
    threads = [threading.Thread(target=asked, args=(port, found, stop), daemon=True)]
    for name, process in (("server", server), ("trainer", trainer)):
        threads.append(threading.Thread(target=watched, args=(name, process, found, stop), daemon=True))
    time.sleep(15)  # until the server has loaded its models
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        server.send_signal(signal.SIGTERM)
        trainer.send_signal(signal.SIGTERM)
        for process in (server, trainer):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            if process.poll() is None:
                process.kill()
        if server.returncode not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            found.differing.append(f"the server ended with exit code {server.returncode}")


def soak(minutes: float, seed: int) -> Findings:
    found, rng = Findings(), random.Random(seed)
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["UNORDINAL_DATA"] = str(folder / "cache")
        book = folder / "book.txt"
        book.write_text(TEXT)
        expected = {}
        for kind in MODELS:
            finished("undisturbed", command(*training(kind, book, folder / kind)), found)
            expected[kind] = results(folder / kind, found)
        with beside(folder, book, minutes, found):
            while time.monotonic() < end:
                kind, out = rng.choice(list(MODELS)), folder / f"run-{found.runs}"
                disturbed(kind, book, out, rng, found)
                after = results(out, found)
                for part, value in expected[kind].items():
                    if after[part] != value:
                        found.differing.append(f"run {found.runs} of {kind}: its {part} differ")
                        say(f"{found.differing[-1]}: {str(after[part])[-500:] if part != 'weights' else ''}")
                found.runs += 1
                shutil.rmtree(out)
                left, faults = max(0.0, end - time.monotonic()), sum(found.faults.values())
                say(f"{found.runs} runs, {faults} faults, {len(found.differing)} differ, {left:.0f} s left")
    return found


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    found = soak(args.minutes, args.seed)
    report = {
        "minutes": args.minutes,
        "faults": sum(found.faults.values()),
        "by kind": dict(found.faults.most_common()),
        "runs": found.runs,
        "runs that differ": len(found.differing),
        "tracebacks": len(found.tracebacks),
        "requests answered": found.requests,
    }
    for name, points in found.memory.items():
        grown = slope(points)
        report[f"memory of the {name}"] = {
            "minutes": round(points[-1][0] / 60, 1),
            "megabytes at the end": round(points[-1][1], 1),
            "megabytes per hour": None if grown is None else round(grown, 2),
        }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    for text in (*found.differing, *found.tracebacks):
        say(text)
    return 1 if found.differing or found.tracebacks else 0


if __name__ == "__main__":
    sys.exit(main())
