"""What can be asked of the server: the requests of the library, under the paths of its API."""

from unordinal.settings import Request
from unordinal.tasks.asking import Sample
from unordinal.tasks.correcting import Correct
from unordinal.tasks.filling import Fill, FillMap
from unordinal.tasks.lines import Measure

REQUESTS: dict[str, tuple[type[Request], str]] = {
    "sample": (Sample, "Samples, and how they were drawn."),
    "sample/stream": (Sample, "Server-sent events: waiting, a frame for each step of the first sample, done."),
    "correct": (Correct, "The corrected text, and every suggestion with its confidence."),
    "fill": (Fill, "Proposals, the likeliest first, with their log-probability in nats."),
    "fill/map": (FillMap, "Proposals as maps, the likeliest first."),
    "bits": (Measure, "Bits of every line, the most surprising first, and of every letter if the model has them."),
}
"""What can be posted under /api/v1/, and what comes back."""
