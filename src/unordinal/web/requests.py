"""What can be asked of the server, with the limits of every field."""

from dataclasses import dataclass
from typing import Any

from unordinal.diffusion.samplers import SAMPLERS
from unordinal.web.fields import characters, choice, grid, integer, number, setting

MOST_CHARACTERS = 10_000
MOST_LENGTH = 512  # symbols of a sample
SEED = integer(0, 2**53 - 1)  # what every reader of JSON can hold

MODEL = "The model, by its name in /api/v1/models; by default the first that can do this."


@dataclass(frozen=True)
class SampleRequest:
    """Draw samples."""

    model: str | None = setting(characters(200), None, MODEL)
    num: int = setting(integer(1, 16), 1, "How many samples.")
    steps: int | None = setting(integer(1, 1000), None, "Network calls of a diffusion; by default at most 256.")
    sampler: str | None = setting(choice(*SAMPLERS), None, "How a diffusion gets from noise to data.")
    temperature: float = setting(number(0, 10), 1.0, "Divides the logits; below 1 samples are likelier.")
    top_p: float = setting(number(0.01, 1), 1.0, "Draw from the likeliest classes that have this probability together.")
    length: int | None = setting(integer(1, MOST_LENGTH), None, "Symbols of a sample; by default the model's own.")
    prompt: str | None = setting(characters(MOST_LENGTH), None, "What a sample begins with; autoregressive models.")
    seed: int = setting(SEED, 0, "Seed of the draws.")


@dataclass(frozen=True)
class CorrectRequest:
    """Correct mistyped letters; nothing is inserted or left out."""

    text: str = setting(characters(MOST_CHARACTERS, 1), ..., "The text.")
    model: str | None = setting(characters(200), None, MODEL)
    error_rate: float = setting(number(0, 0.9, is_open=True), 0.02, "The share of letters that are wrong.")
    threshold: float = setting(number(0, 1), 0.5, "The least probability of a suggestion.")
    method: str | None = setting(choice("pass", "beam"), None, "One pass of a diffusion, or beam search.")
    passes: int = setting(integer(1, 10), 1, "How often a diffusion reads the text.")
    beam: int = setting(integer(1, 64), 16, "How many candidates a beam search keeps.")


@dataclass(frozen=True)
class FillRequest:
    """Fill the gaps of a text."""

    text: str = setting(characters(MOST_CHARACTERS, 1), ..., "The text, with a sign for every missing letter.")
    model: str | None = setting(characters(200), None, MODEL)
    gap: str = setting(characters(1, 1), "_", "The sign of a missing letter.")
    num: int = setting(integer(1, 20), 5, "How many proposals.")
    seed: int = setting(SEED, 0, "Seed of the draws.")


@dataclass(frozen=True)
class FillMapRequest:
    """Fill the holes of a map."""

    map: list[list[int]] = setting(grid(256, -1, 65_535), ..., "Rows of classes, with -1 where they are missing.")
    model: str | None = setting(characters(200), None, MODEL)
    num: int = setting(integer(1, 8), 4, "How many proposals.")
    seed: int = setting(SEED, 0, "Seed of the draws.")


@dataclass(frozen=True)
class BitsRequest:
    """Tell how surprising a text is, line by line and letter by letter."""

    text: str = setting(characters(MOST_CHARACTERS, 1), ..., "The text.")
    model: str | None = setting(characters(200), None, MODEL)
    seed: int = setting(SEED, 0, "Seed of a bound's draws.")


REQUESTS: dict[str, tuple[Any, str]] = {
    "sample": (SampleRequest, "Samples, and how they were drawn."),
    "sample/stream": (SampleRequest, "Server-sent events: waiting, a frame for each step of the first sample, done."),
    "correct": (CorrectRequest, "The corrected text, and every suggestion with its probability."),
    "fill": (FillRequest, "Proposals, the likeliest first, with their log-probability in nats."),
    "fill/map": (FillMapRequest, "Proposals as maps, the likeliest first."),
    "bits": (
        BitsRequest,
        "Bits of every line, the most surprising first, and of every letter where the model has them.",
    ),
}
"""What can be posted under /api/v1/, and what comes back."""
