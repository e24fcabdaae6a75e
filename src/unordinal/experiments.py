"""The experiments of *Argmax Flows and Multinomial Diffusion* (Hoogeboom et al., NeurIPS 2021) as plain data.

DATA describes the paper's data sets, EXPERIMENTS lists which model was run on which, and TABLES has the rows of its
tables: a model, changes of its settings, and the paper's figures with the place where its source has them. Rows that
are marked `since` are not the paper's: they show what has been published since. `unordinal reproduce` runs the rows.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Task = Literal["text8", "enwik8", "toy", "cityscapes"]
"""A data set of the paper."""


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper.

    Args:
        source: the data set by its name in this library.
        settings: the paper's settings of the data.
        num_classes: the number of classes.
        shape: the shape of an example.
        stand_in: a data set that is always here, for when the paper's own is not given.
    """

    source: str
    settings: dict[str, Any]
    num_classes: int
    shape: tuple[int, ...]
    stand_in: str


DATA: dict[Task, PaperData] = {
    "text8": PaperData("text8", {"alphabet": "text8", "length": 256}, 27, (256,), "docs"),
    "enwik8": PaperData("enwik8", {"alphabet": "bytes", "length": 320}, 256, (320,), "docs"),
    "toy": PaperData("eight-gaussians", {}, 91, (2,), "eight-gaussians"),
    "cityscapes": PaperData("cityscapes", {"flips": True}, 8, (32, 64), "streets"),
}

TEXT_MODELS = (
    *("multinomial", "arm", "arm-xl", "argmax-ar", "argmax-coupling", "uniform-dequant-ar"),
    *("uniform-dequant-coupling", "variational-dequant-ar", "variational-dequant-coupling"),
    *("discrete-flow", "latent-af-af", "latent-iaf-scf", "categorical-nf"),
)
MAP_MODELS = (
    *("multinomial", "argmax-softplus", "argmax-gumbel", "argmax-gumbel-threshold", "uniform-dequant"),
    *("variational-dequant", "vae"),
)
EXPERIMENTS: dict[str, tuple[str, Task]] = {
    **{f"text8/{model}": (model, "text8") for model in TEXT_MODELS},
    **{f"enwik8/{model}": (model, "enwik8") for model in TEXT_MODELS},
    "toy/eight-gaussians": ("argmax-ar", "toy"),
    "toy/discrete-flow": ("discrete-flow", "toy"),
    **{f"cityscapes/{model}": (model, "cityscapes") for model in MAP_MODELS},
}
"""The experiments of the paper by name: the model, a key of RECIPES, and its data."""


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, and where the paper's source has it.

    Args:
        value: the figure.
        table: the label of its table.
        row: what the row is called there; every text must be in one of its cells.
        column: the heading of its column.
        error: the deviation that the paper gives with it.
        note: a remark on it.
    """

    value: float
    table: str
    row: tuple[str, ...]
    column: str
    error: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Sentence:
    """A figure that the paper gives in its text: the words of the source in which it stands."""

    value: float
    words: str
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: what is trained and measured, and what the paper found.

    Args:
        title: the model as the paper calls it.
        model: the model, a key of RECIPES.
        data: its data.
        figures: the paper's figures for the bound (or exact likelihood, or seconds) of the row.
        iwbo: the paper's figures for the importance-weighted bound, which is then measured too.
        settings: changes of the settings of the model, by dotted name.
        seeds: how many runs with different seeds there are.
        steps: for sampling times: the reverse steps of a diffusion.
        since: whether the row is not the paper's.
    """

    title: str
    model: str
    data: Task
    figures: tuple[Figure | Sentence, ...] = ()
    iwbo: tuple[Figure, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: int = 1
    steps: int | None = None
    since: bool = False

    @property
    def experiment(self) -> str:
        """The name under which the model is configured: of an experiment of the paper, or of the model itself."""
        name = next((name for name, pair in EXPERIMENTS.items() if pair == (self.model, self.data)), None)
        return name or self.model


@dataclass(frozen=True)
class Table:
    """A table or a figure of the paper, or one of ours in its style.

    Args:
        title: what it shows.
        rows: its rows.
        claim: what the paper concludes from it.
        kind: how the rows are measured: by scores, by sampling times, or by scores of several budgets.
        shown: what is drawn from the trained models: samples, chain, spelling, maps or probabilities.
    """

    title: str
    rows: tuple[Row, ...]
    claim: str = ""
    kind: Literal["scores", "times", "scaling"] = "scores"
    shown: tuple[str, ...] = ()


def plain(title: str) -> str:
    """Return the name of a model without the paper's mark for its own."""
    return title.removesuffix(" (ours)")


def text_rows(
    title: str, model: str, table: str, row: tuple[str, ...], figures: tuple[float, float | None], *more: Figure
) -> tuple[Row, ...]:
    """Return the rows of a model on text8 and on enwik8; `more` are further figures for text8."""
    columns = COLUMNS[table]
    first = Row(plain(title), model, "text8", (Figure(figures[0], table, row, columns[0]), *more))
    other = () if figures[1] is None else (Figure(figures[1], table, row, columns[1]),)
    return (first, Row(plain(title), model, "enwik8", other))


FLOWS, TEXTS, MAPS = "tab:performance_generative_flow_text", "tab:performance_text", "tab:results_cityscapes"
CARTESIAN, TIMES = "tab:cartesian_products", "tab:time_experiment"
DEVIATIONS, DISCRETE = "tab:stdev", "tab:discrete_flows_reimplementation"
COLUMNS = {FLOWS: ("text8 (bpc)", "enwik8 (bits per raw byte)"), TEXTS: ("text8 (bpc)", "enwik8 (bpb)")}
UNIFORM, VARIATIONAL, ARGMAX = "Uniform dequantization", "Variational dequantization", "Argmax Flow (ours)"
AR_TITLE, COUPLING_TITLE = "Argmax Flow, AR (ours)", "Argmax Coupling Flow (ours)"
DIFFUSION_TITLE = "Multinomial Text Diffusion (ours)"
AR_MAIN = Figure(1.39, TEXTS, (AR_TITLE,), COLUMNS[TEXTS][0], note="1.39 in the comparison of text models")
COUPLING_OTHER = Figure(1.80, DISCRETE, (COUPLING_TITLE,), "text8 (bpc)", note="1.80 next to discrete flows")
AR_FLOWS = Figure(1.38, FLOWS, (ARGMAX, "Autoregressive"), COLUMNS[FLOWS][0], note="1.38 in the comparison of flows")

DEQUANTISATION = Table(
    "Dequantisation and argmax flows on text, bits per character",
    (
        *text_rows(f"{UNIFORM}, AR", "uniform-dequant-ar", FLOWS, (UNIFORM, "Autoregressive"), (1.90, 2.14)),
        *text_rows(
            f"{VARIATIONAL}, AR", "variational-dequant-ar", FLOWS, (VARIATIONAL, "Autoregressive"), (1.43, 1.44)
        ),
        *text_rows(AR_TITLE, "argmax-ar", FLOWS, (ARGMAX, "Autoregressive"), (1.38, 1.42), AR_MAIN),
        *text_rows(f"{UNIFORM}, coupling", "uniform-dequant-coupling", FLOWS, (UNIFORM, "Coupling"), (2.01, 2.33)),
        *text_rows(
            f"{VARIATIONAL}, coupling", "variational-dequant-coupling", FLOWS, (VARIATIONAL, "Coupling"), (2.08, 2.28)
        ),
        *text_rows(COUPLING_TITLE, "argmax-coupling", FLOWS, (ARGMAX, "Coupling"), (1.82, 1.93), COUPLING_OTHER),
    ),
    claim="argmax flows outperform uniform and variational dequantisation, and the gap is widest for couplings",
)

TEXT_COMPARISON = Table(
    "All models of text, bits per character",
    (
        *text_rows("64 Layer Transformer", "arm", TEXTS, ("64 Layer Transformer",), (1.13, 1.06)),
        *text_rows("TransformerXL", "arm-xl", TEXTS, ("TransformerXL",), (1.08, 0.99)),
        *text_rows("AF/AF (AR)", "latent-af-af", TEXTS, ("AF/AF (AR)",), (1.62, 1.72)),
        *text_rows("IAF / SCF", "latent-iaf-scf", TEXTS, ("IAF / SCF",), (1.88, 2.03)),
        *text_rows("CategoricalNF (AR)", "categorical-nf", TEXTS, ("CategoricalNF (AR)",), (1.45, None)),
        *text_rows(AR_TITLE, "argmax-ar", TEXTS, (AR_TITLE,), (1.39, 1.42), AR_FLOWS),
        *text_rows(COUPLING_TITLE, "argmax-coupling", TEXTS, (COUPLING_TITLE,), (1.82, 1.93), COUPLING_OTHER),
        *text_rows(DIFFUSION_TITLE, "multinomial", TEXTS, (DIFFUSION_TITLE,), (1.72, 1.75)),
        Row("Uniform noise in continuous time", "uniform", "text8", since=True),
        Row("Masked (absorbing) diffusion", "absorbing", "text8", since=True),
        Row("Uniform noise in continuous time", "uniform", "enwik8", since=True),
        Row("Masked (absorbing) diffusion", "absorbing", "enwik8", since=True),
        Row("Block diffusion, blocks of 4", "block", "text8", since=True),
        Row("Block diffusion, blocks of 4", "block", "enwik8", since=True),
        Row("Masked diffusion of 1,024 tokens", "absorbing", "text8", settings={"alphabet": "bpe:1024"}, since=True),
        Row("Block diffusion of 1,024 tokens", "block", "text8", settings={"alphabet": "bpe:1024"}, since=True),
        Row("Transformer over 1,024 tokens", "arm", "text8", settings={"alphabet": "bpe:1024"}, since=True),
    ),
    claim="autoregressive argmax flows outperform latent flows; multinomial diffusion outperforms the other models "
    "that are not autoregressive; Transformers outperform all of them",
    shown=("samples", "chain", "spelling"),
)  # fmt: skip


def map_row(title: str, model: str, row: str, elbo: float, iwbo: float) -> Row:
    """Return a row of the table of maps."""
    figures = (Figure(elbo, MAPS, (row,), "ELBO"),)
    return Row(plain(title), model, "cityscapes", figures, (Figure(iwbo, MAPS, (row,), "IWBO"),))


SOFTPLUS, GUMBEL, THRESHOLD = (
    f"Argmax / {name} (ours)" for name in ("Softplus thres.", "Gumbel dist.", "Gumbel thres.")
)
MAP_DIFFUSION = "Multinomial Diffusion (ours)"
DIFFUSION_BITS = (
    Figure(0.305, MAPS, (MAP_DIFFUSION,), "ELBO"),
    Sentence(0.37, "0.37 bpp on test", note="0.37 in the text, where train has 0.33"),
)
MAP_COMPARISON = Table(
    "Segmentation maps, bits per pixel",
    (
        map_row("Uniform dequantisation", "uniform-dequant", "Round / Unif.", 1.010, 0.930),
        map_row("Variational dequantisation", "variational-dequant", "Round / Var.", 0.334, 0.315),
        map_row(SOFTPLUS, "argmax-softplus", SOFTPLUS, 0.303, 0.290),
        map_row(GUMBEL, "argmax-gumbel", GUMBEL, 0.365, 0.341),
        map_row(THRESHOLD, "argmax-gumbel-threshold", THRESHOLD, 0.307, 0.287),
        Row(plain(MAP_DIFFUSION), "multinomial", "cityscapes", DIFFUSION_BITS),
        Row("VAE with flow prior and posterior", "vae", "cityscapes", since=True),
        Row("Uniform noise in continuous time", "uniform", "cityscapes", since=True),
        Row("Masked (absorbing) diffusion", "absorbing", "cityscapes", since=True),
    ),
    claim="argmax flows with thresholding outperform dequantisation; the softplus has the best ELBO, the Gumbel "
    "threshold the best IWBO",
    shown=("maps",),
)

CARTESIAN_PRODUCTS = Table(
    "Bases of the Cartesian product, bits per character",
    tuple(
        Row(
            f"base {base}, {digits} digits" if digits > 1 else f"base {base}, 1 digit",
            "argmax-ar",
            "text8",
            (Figure(bits, CARTESIAN, (f"d_m={digits}, M={base}",), "text8 (bpc)"),),
            settings={} if base == 2 else {"base": base, "surjection": "softplus"},
        )
        for digits, base, bits in ((1, 27, 1.45), (2, 6, 1.44), (3, 3, 1.44), (5, 2, 1.44))
    ),
    claim="the base makes little difference; a small one is slightly better",
)


def timed(title: str, model: str, row: str, value: float, error: float | None = None, **settings: Any) -> Row:
    """Return a row of the table of sampling times."""
    steps, note = settings.pop("steps", None), settings.pop("note", "")
    figure = Figure(value, TIMES, (row,), "Sample time (s)", error, note)
    return Row(plain(title), model, "text8", (figure,), settings=settings, steps=steps)


LONGER = "of 288 characters"
SAMPLING_TIME = Table(
    "Seconds to draw one sample of 256 characters",
    (
        timed("64 Layer Transformer", "arm", "64 Layer Transformer", 35.5, note=LONGER),
        timed("AF/AF (AR)", "latent-af-af", "AF/AF (AR)", 156, 1.8),
        timed("IAF / SCF", "latent-iaf-scf", "IAF / SCF", 0.04, 0.004),
        timed(AR_TITLE, "argmax-ar", AR_TITLE, 115, 0.03),
        timed(COUPLING_TITLE, "argmax-coupling", COUPLING_TITLE, 0.40, 0.03),
        timed("Discrete Flow, bipartite", "discrete-flow", "Discrete Flow", 0.16, flow="bipartite", note=LONGER),
        timed("Multinomial, 1000 steps", "multinomial", DIFFUSION_TITLE, 26.6, 2.2, steps=1000),
        timed(
            "Multinomial, 100 steps",
            "multinomial",
            "Multinomial Text Diffusion, 100 steps (ours)",
            2.4,
            0.16,
            steps=100,
        ),
    ),
    claim="autoregressive models sample orders of magnitude more slowly; fewer steps make diffusion faster",
    kind="times",
)


def deviating(title: str, model: str, data: Task, flow: str, mean: float, deviation: float) -> Row:
    """Return a row of the table of deviations over seeds."""
    row = (ARGMAX, flow, data)
    figure = Figure(mean, DEVIATIONS, row, "average", deviation)
    return Row(plain(title), model, data, (figure,), seeds=3)


OVER_SEEDS = Table(
    "Deviations over three seeds, bits per character",
    (
        deviating(AR_TITLE, "argmax-ar", "text8", "AR", 1.38, 0.001),
        deviating(AR_TITLE, "argmax-ar", "enwik8", "AR", 1.42, 0.008),
        deviating(COUPLING_TITLE, "argmax-coupling", "text8", "Coupling", 1.82, 0.017),
        deviating(COUPLING_TITLE, "argmax-coupling", "enwik8", "Coupling", 1.93, 0.012),
    ),
    claim="the deviations are small next to the differences between models",
)


def discrete(title: str, row: str, value: float, settings: dict[str, Any], note: str = "") -> Row:
    """Return a row of the table of discrete flows."""
    figure = Figure(value, DISCRETE, (row,), "text8 (bpc)", note=note)
    return Row(title, "discrete-flow", "text8", (figure,), settings=settings)


PUBLISHED, THEIRS = "Discrete Flows from paper (coupling, factorized base, {} scale)", "as Tran et al. report"
REPEATED = "Discrete Flows reimplementation (AR, factorized base, without scale)"
BIPARTITE: dict[str, Any] = {"flow": "bipartite"}
SCALED = {**BIPARTITE, "scale": True}
AR_DISCRETE = Figure(1.38, DISCRETE, (AR_TITLE,), "text8 (bpc)")
COUPLING_FLOWS = Figure(1.82, FLOWS, (ARGMAX, "Coupling"), COLUMNS[FLOWS][0], note="1.82 in the comparison of flows")
DISCRETE_FLOWS = Table(
    "Discrete flows, bits per character",
    (
        discrete("Discrete flow, coupling, without scale", PUBLISHED.format("without"), 1.29, BIPARTITE, THEIRS),
        discrete("Discrete flow, coupling, with scale", PUBLISHED.format("with"), 1.23, SCALED, THEIRS),
        discrete("Discrete flow, AR, without scale", REPEATED, 4.13, {}),
        Row(plain(AR_TITLE), "argmax-ar", "text8", (AR_DISCRETE, AR_MAIN)),
        Row(plain(COUPLING_TITLE), "argmax-coupling", "text8", (COUPLING_OTHER, COUPLING_FLOWS)),
    ),
    claim="discrete flows do not reach the figures that were published for them",
)

NATS = "6.32 versus 7.0 nats"
EIGHT_GAUSSIANS = Table(
    "Quantised eight Gaussians, nats",
    (
        Row("Argmax flow, one layer", "argmax-ar", "toy", (Sentence(6.32, NATS),)),
        Row("Discrete flow", "discrete-flow", "toy", (Sentence(7.0, NATS),)),
    ),
    claim="argmax flows outperform discrete flows, in nats and to the eye",
    shown=("probabilities",),
)

SCALING = Table(
    "Bits per character against compute",
    tuple(Row(model, model, "text8", since=True) for model in ("multinomial", "absorbing", "argmax-ar", "arm")),
    kind="scaling",
)

TABLES: dict[str, Table] = {
    "dequantisation": DEQUANTISATION,
    "text-models": TEXT_COMPARISON,
    "cityscapes": MAP_COMPARISON,
    "cartesian": CARTESIAN_PRODUCTS,
    "sampling-time": SAMPLING_TIME,
    "deviations": OVER_SEEDS,
    "discrete-flows": DISCRETE_FLOWS,
    "eight-gaussians": EIGHT_GAUSSIANS,
    "scaling": SCALING,
}
"""The tables by the name that `unordinal reproduce` takes."""
