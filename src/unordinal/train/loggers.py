"""Loggers: what receives the losses and scores of a run while it trains, and the one for TensorBoard."""

import json
from pathlib import Path
from typing import Any, Protocol

from unordinal.model import CategoricalModel
from unordinal.train.log import Reporter

LEFT_OUT = ("seconds", "best_step")
VALIDATION = "val_"


class Logger(Protocol):
    """Receives what a run measures while it trains; `unordinal.fit(..., logger=...)` takes one.

    >>> class Printer:
    ...     def started(self, folder, settings, step):
    ...         print("from step", step)
    ...     def logged(self, step, values):
    ...         print(step, sorted(values)) if "val_bits_per_dim" in values else None
    ...     def ended(self):
    ...         print("ended")
    >>> import unordinal
    >>> run = unordinal.fit("independent", [[0, 1], [1, 0]] * 50, logger=Printer(), progress=False)
    from step 0
    1 ['best_step', 'seconds', 'val_bits_per_dim', 'val_standard_error']
    ended
    """

    def started(self, folder: Path, settings: dict[str, Any], step: int) -> None:
        """Begin to log.

        Args:
            folder: the folder of the run.
            settings: all settings of the run, as plain values.
            step: the step that the run starts or continues from.
        """

    def logged(self, step: int, values: dict[str, float]) -> None:
        """Receive the values of a step: its `loss`, `lr` and `gradient_norm`, or `val_bits_per_dim` of a validation."""

    def ended(self) -> None:
        """End, also after an interrupt or an error."""


class LoggingReporter:
    """Tells a logger of a run, and then another reporter."""

    def __init__(self, logger: Logger, reporter: Reporter, folder: Path, settings: dict[str, Any]):
        self.logger, self.reporter, self.folder, self.settings = logger, reporter, folder, settings
        self._has_started = False

    def built(self, model: CategoricalModel) -> None:
        self.reporter.built(model)

    def started(self, step: int, fraction: float) -> None:
        self._has_started = True
        self.logger.started(self.folder, self.settings, step)
        self.reporter.started(step, fraction)

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
        self.logger.logged(metrics["step"], {name: value for name, value in metrics.items() if name != "step"})
        self.reporter.stepped(metrics, fraction)

    def validated(self, metrics: dict[str, Any]) -> None:
        self.logger.logged(metrics["step"], {name: value for name, value in metrics.items() if name != "step"})
        self.reporter.validated(metrics)

    def warned(self, text: str) -> None:
        self.reporter.warned(text)

    def close(self) -> None:
        if self._has_started:
            self.logger.ended()
        self.reporter.close()


class TensorBoardLogger:
    """Writes the loss, the learning rate, the speed and the validation scores of a run for TensorBoard.

    `tensorboard --logdir runs` shows all runs next to each other. A run that is continued drops what an earlier
    process logged after the step that it continues from.

    Args:
        folder: where the logs are written; by default the folder `tensorboard` of the run.

    >>> import unordinal
    >>> logger = unordinal.TensorBoardLogger()
    >>> run = unordinal.fit("independent", [[0, 1], [1, 0]] * 50, logger=logger, progress=False)
    >>> [path.name for path in run.folder.path.iterdir() if path.is_dir()]
    ['tensorboard']
    """

    def __init__(self, folder: str | Path | None = None):
        self.folder = folder
        self._writer: Any = None
        check_installed()

    def started(self, folder: Path, settings: dict[str, Any], step: int) -> None:
        """Open the log, and write the settings of the run to it."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder or folder / "tensorboard"), purge_step=step + 1 if step else None)
        text = json.dumps(settings, indent=1).replace("\n", "\n    ")
        self._writer.add_text("settings", f"    {text}", step)

    def logged(self, step: int, values: dict[str, float]) -> None:
        """Write each value as a scalar of the group training or validation."""
        for name, value in values.items():
            if name in LEFT_OUT:
                continue
            tag = f"validation/{name[len(VALIDATION) :]}" if name.startswith(VALIDATION) else f"training/{name}"
            self._writer.add_scalar(tag, value, step)

    def ended(self) -> None:
        """Close the log."""
        self._writer.close()


def check_installed() -> None:
    """Raise a ValueError that says what to install if TensorBoard's package is missing."""
    try:
        import tensorboard  # noqa: F401
    except ImportError as error:
        raise ValueError("logs for TensorBoard need its package: pip install 'unordinal[tensorboard]'") from error
