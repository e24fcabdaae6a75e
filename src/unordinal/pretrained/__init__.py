"""Models that come with the package: `unordinal.load("pretrained:text8-arm")`.

Each has a folder here with the configuration and the weights of a run, in float16, and a model card. Nothing is
downloaded.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from unordinal.names import unknown

PREFIX = "pretrained:"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pretrained:
    """A model that comes with the package.

    Args:
        description: what it is good for.
        sha256: of its model.safetensors.
        judge: the reference of the bundled model that weighs its corrections together with it; None for none.
    """

    description: str
    sha256: str
    judge: str | None = None


PRETRAINED: dict[str, Pretrained] = {
    "text8-arm": Pretrained(
        "autoregressive, letter by letter: continues, scores and corrects English text; exact likelihood",
        "fbe5a3f326121605b606dfd0417a7c8194963431d6a8e5e8c250acda9aa11b4d",
        judge="pretrained:english-arm",
    ),
    "english-arm": Pretrained(
        "autoregressive, over pieces of words: continues, scores, fills and compresses English text; exact likelihood",
        "0fd25c9601eaa99c5347c269e1a0da5af457429e1d1f1311ffa2dd317a6412fe",
    ),
    "english-absorbing": Pretrained(
        "masked diffusion over pieces of words: English text emerges in any order, gaps are filled from both sides",
        "7b02afcd8cd413a4c025d131c8d608534a5065cc906159ba6ec0d04851f7edc4",
    ),
    "text8-uniform": Pretrained(
        "diffusion with uniform noise, letter by letter: text settles out of random letters; corrects wrong ones",
        "76fb51e773c0ed52621727c8e24434f32dd0f4fe2e1dbf1f0752e4ba31f9b243",
    ),
    "landcover": Pretrained(
        "masked diffusion of land-cover maps: maps settle out of masks, erased regions are filled",
        "57ee67f9558fe43fa6c8d516f5237477cf480f910e9255132a61387c1a4393fd",
    ),
    "molecules": Pretrained(
        "autoregressive: small molecules as SMILES strings, with a number of rings if you like",
        "3634b843571cb25a31be40f7b3734b0ea4d4ef1f45137412569444f4f2996fc2",
    ),
    "cafe": Pretrained(
        "autoregressive, in any order of columns, of a generated table: synthetic rows, missing cells, unusual rows",
        "4ca31559a5894f3bc2fdbba363b9f8d1ab233af1832115943ac89aea5190dbb2",
    ),
}
"""The models by name."""


def is_pretrained(path: object) -> bool:
    return str(path).startswith(PREFIX)


def description_of(name: str) -> str:
    """Return what a bundled model is good for; nothing for other models."""
    known = PRETRAINED.get(name.removeprefix(PREFIX)) if is_pretrained(name) else None
    return "" if known is None else known.description


def judge_of(folder: Path) -> str | None:
    """Return the reference of the bundled model that weighs the corrections of the one in a folder, or None."""
    known = PRETRAINED.get(folder.name) if folder.parent == HERE else None
    return None if known is None else known.judge


def pretrained_folder(path: object) -> Path:
    """Return the folder of a model by its name, once its weights are known to be what they should be."""
    name = str(path).removeprefix(PREFIX)
    if name not in PRETRAINED:
        raise unknown("pretrained model", name, PRETRAINED, cutoff=0.4)
    folder = HERE / name
    weights = folder / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() else "nothing"
    if found != PRETRAINED[name].sha256:
        raise ValueError(
            f"{weights} is not what it should be: expected sha256 {PRETRAINED[name].sha256[:12]}..., found "
            f"{found[:12]}...; install unordinal again"
        )
    return folder
