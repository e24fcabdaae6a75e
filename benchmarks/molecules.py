"""Train models of molecules written as SMILES strings, with the number of rings as a label; check samples with RDKit.

Rings are counted as bonds less atoms plus 1, so that each ring of a cage counts once; molecules with more than four
have no label.

Needs `pip install rdkit`. Prints bits per molecule, and of 10,000 samples how many are valid, how many of the valid
ones are different, and how many of those the training data lack. Samples of each label that at least one molecule in
a hundred has are drawn with guidance, and checked for the label.

    python benchmarks/molecules.py --data qm9_smiles.txt.xz --minutes 10 --models arm absorbing

With --write FILE it writes a CSV file of molecules and rings instead, on which `unordinal train` can be run, and with
--run RUN it measures a model that was trained before.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem, RDLogger

from unordinal.api import Run, fit, load
from unordinal.data import load_data
from unordinal.evaluate.counts import CountModel

RINGS = 4  # molecules with more rings have no label
GUIDANCE = (0.0, 1.0, 2.0, 4.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--models", nargs="*", default=["arm", "absorbing"])
    parser.add_argument("--num", type=int, default=10_000)
    parser.add_argument("--guided", type=int, default=500, help="guided samples of each label")
    parser.add_argument("--out", type=Path, default=Path("molecules"))
    parser.add_argument("--write", type=Path, help="write a table of the molecules and their rings, and stop")
    parser.add_argument("--run", help="measure this run, and train none")
    args = parser.parse_args()
    logger: Any = RDLogger
    logger.DisableLog("rdApp.*")
    texts = [text for text in load_lines(args.data) if text]
    rings = [rings_of(text) for text in texts]
    labels = [number if number <= RINGS else -1 for number in rings]
    if args.write:
        rows = (f"{text},{'' if number < 0 else number}\n" for text, number in zip(texts, labels, strict=True))
        args.write.write_text("smiles,rings\n" + "".join(rows))
        return
    if args.run:
        run = load(args.run)
        print(json.dumps({"model": args.run, **quality(run, texts, args.num), **guided(run, args.guided)}), flush=True)
        return
    print(json.dumps({"molecules": len(texts), "rings": np.bincount(rings).tolist(), **counted(texts)}), flush=True)
    for name in args.models:
        began = time.monotonic()
        run = fit(name, texts, labels={"rings": labels}, out=args.out / name, minutes=args.minutes, progress=False)
        score = run.score(repeats=None if run.model.is_exact else 8)
        found: dict[str, Any] = {"model": name, "score": str(score), "seconds": round(time.monotonic() - began)}
        print(json.dumps({**found, **quality(run, texts, args.num), **guided(run, args.guided)}), flush=True)


def load_lines(path: str) -> list[str]:
    """Return the lines of a file, in its order."""
    data = load_data(path, lines=True, shuffle=False, split="0,0,1")
    return [data.spec.show(row) for row in data.test.examples(np.arange(len(data.test)))]


def rings_of(text: str) -> int:
    """Return the number of independent rings of a molecule, -1 if the text is not one."""
    molecule = Chem.MolFromSmiles(text)
    return -1 if molecule is None or not text else molecule.GetNumBonds() - molecule.GetNumAtoms() + 1


def canonical(texts: list[str]) -> list[str]:
    """Return the valid molecules among texts, each in one way of writing."""
    molecules = [Chem.MolFromSmiles(text) for text in texts if text]
    return [Chem.MolToSmiles(molecule) for molecule in molecules if molecule is not None]


def counted(texts: list[str]) -> dict[str, float]:
    """Return bits per molecule of counts of order 5, each molecule with its end, of the last 5 % given the others."""
    order = np.random.default_rng(0).permutation(len(texts))
    mixed = [texts[row] for row in order]
    alphabet = sorted(set("".join(texts)) | {"\n"})
    codes = {letter: number for number, letter in enumerate(alphabet)}
    cut = len(mixed) - len(mixed) // 20
    train, test = (np.array([codes[c] for text in part for c in text + "\n"]) for part in (mixed[:cut], mixed[cut:]))
    bits = CountModel(train, len(alphabet), 5).bits_per_symbol(test)
    return {"order-5 counts, bits per molecule": round(bits * len(test) / (len(mixed) - cut), 3)}


def quality(run: Run, texts: list[str], num: int) -> dict[str, float]:
    """Return the shares of valid, of different and of new molecules among samples without a label."""
    began = time.monotonic()
    drawn = run.sample(num, batch_size=256)
    seconds, valid, known = time.monotonic() - began, canonical(drawn), set(canonical(texts))
    different = set(valid)
    shares = {"valid": len(valid) / num, "unique": len(different) / max(1, len(valid))}
    novel = len(different - known) / max(1, len(different))
    return {**{name: round(v, 4) for name, v in shares.items()}, "novel": round(novel, 4), "seconds": round(seconds, 1)}


def guided(run: Run, num: int) -> dict[str, Any]:
    """Return, for each guidance, the share of samples that have the label that was asked for, and of different ones."""
    label, found = run.spec.labels[0], {}
    values = [value for value, n in zip(label.values, label.counts, strict=True) if n >= sum(label.counts) / 100]
    for guidance in GUIDANCE:
        right, valid, different = 0, 0, 0
        for value in values:
            texts = run.sample(num, label={"rings": value}, guidance=guidance, batch_size=256)
            kept = canonical(texts)
            right += sum(rings_of(text) == int(value) for text in texts)
            valid, different = valid + len(kept), different + len(set(kept))
        total = num * len(values)
        found[f"guidance {guidance:g}"] = {
            "with the label": round(right / total, 4), "valid": round(valid / total, 4),
            "unique": round(different / max(1, valid), 4),
        }  # fmt: skip
    return found


if __name__ == "__main__":
    main()
