"""Race models of characters and of byte-pair tokens on one text, for the same minutes, two at a time on a core each.

Prints bits per character of the whole val split, two samples of each, and how many of 64 samples are written with other
tokens than the tokenizer would write the same text with. Counts of order 5 are printed first.

    python benchmarks/tokens_race.py --data text8.prefix.xz --minutes 5
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ALPHABETS = ("text8", "bpe:1024", "bpe:512", "bpe:4096")
MODELS = ("arm", "absorbing", "uniform", "multinomial")
SAMPLES = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--alphabets", nargs="*", default=ALPHABETS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--together", type=int, default=2, help="how many run at a time")
    parser.add_argument("--out", type=Path, default=Path("tokens_race"))
    parser.add_argument("--settings", type=json.loads, default={}, help="of training, as JSON")
    parser.add_argument("--one", nargs=2, help="used by this script itself")
    args = parser.parse_args()
    if args.one:
        one(args.one[0], args.one[1], args)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    counted(args.data)
    jobs = [(model, alphabet) for model in args.models for alphabet in args.alphabets]
    for start in range(0, len(jobs), args.together):
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "GOMP_SPINCOUNT": "100000"}
        command = [sys.executable, *sys.argv, "--one"]
        some = [subprocess.Popen([*command, *job], env=environment) for job in jobs[start : start + args.together]]
        for process in some:
            process.wait()


def counted(data: str) -> None:
    """Print the bits per character of counts of order 5."""
    from unordinal.data import load_data
    from unordinal.evaluate.counts import CountModel

    loaded = load_data(data)
    model = CountModel(np.asarray(loaded.train.symbols), loaded.spec.num_classes, 5)
    bits = model.bits_per_symbol(np.asarray(loaded.val.symbols))
    print(json.dumps({"model": "order-5 counts", "bits_per_character": round(bits, 4)}), flush=True)


def one(model: str, alphabet: str, args: argparse.Namespace) -> None:
    """Train and score one contestant."""
    from unordinal.api import fit

    out = args.out / f"{model}-{alphabet.replace(':', '')}"
    given: dict[str, Any] = {"minutes": args.minutes, "alphabet": alphabet, **args.settings}
    run = fit(model, args.data, out=out, progress=False, **given)
    score = run.score(split="val")
    texts = run.sample(SAMPLES)
    assert run.data is not None
    characters = run.data.mean_characters
    found: dict[str, Any] = {"model": model, "alphabet": alphabet, "bits_per_character": round(score.bits_per_dim, 4)}
    found |= {"error": round(score.standard_error or 0, 4), "bits_per_token": score.bits_per_token, "kind": score.kind}
    found |= {"characters_per_window": round(characters, 1), "steps": run.folder.published_step}
    if alphabet.startswith("bpe"):
        found["other_tokens"] = others(run, texts)
    print(json.dumps({**found, "samples": texts[:2]}), flush=True)


def others(run: Any, texts: list[str]) -> float:
    """Return the share of samples whose tokens are not those with which the tokenizer writes their text."""
    from unordinal.tasks.asking import Sample
    from unordinal.tasks.drawing import sample

    drawn = sample(run.model, run.spec, Sample(num=len(texts))).x
    own = [run.spec.vocabulary.encode(run.spec.show(x)).tolist() for x in drawn]
    return float(np.mean([x.tolist() != tokens for x, tokens in zip(drawn, own, strict=True)]))


if __name__ == "__main__":
    main()
