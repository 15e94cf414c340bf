"""Progress of a run: a bar for each member of a repeat, or lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from tqdm import tqdm

from haarpool._numbers import fixed
from haarpool._progress import ProgressLines, ProgressOption, is_hidden
from haarpool._text import printable
from haarpool.datasets.splits import num_folds
from haarpool.tasks import Score
from haarpool.training.loop import Trainer
from haarpool.training.run import Epoch, Run

MAX_NAME = 12  # characters of the name of a dataset in a bar
# The numbers of steps and their rate are left out: 80 columns are for the bar and the score.
BAR = "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"


class RunProgress:
    """Shows how far the training of a run is.

    As lines: one after each of several repeats, and one every 30 seconds within a repeat.

    Args:
        run: The run, after its checkpoint was loaded.
        progress: True shows a progress bar, False hides it, `None` shows it on a terminal; a
            function is called with lines of text. Only rank 0 shows anything.
        trainer: The trainer of the member that is in progress, if there is one.
    """

    def __init__(self, run: Run, progress: ProgressOption, trainer: Trainer | None = None) -> None:
        self._run = run
        self._progress = progress if run.group.is_main else False
        self._lines = None
        if callable(self._progress):
            self._lines = ProgressLines(self._progress, self._share(trainer))

    def bar(self, trainer: Trainer) -> tqdm:
        """Return the bar of a member of a repeat."""
        run, steps = self._run, trainer.steps_per_epoch
        name = printable(run.graphs.name)
        name = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
        name += f" {trainer.repeat + 1}/{len(run.splits)}"
        if run.config.ensemble > 1:
            name += f", member {trainer.member + 1}/{run.config.ensemble}"
        return tqdm(
            total=run.config.epochs * steps,
            initial=trainer.progress.epoch * steps,
            desc=name,
            disable=is_hidden(self._progress),
            leave=False,
            bar_format=BAR,
        )

    def end_epoch(self, epoch: Epoch, trainer: Trainer, bar: tqdm) -> None:
        """Show the metrics of an epoch."""
        score = f"validation {_show_score(trainer.task.scores[0], epoch.validation_score)}"
        loss = f"loss {fixed(epoch.train_loss, 3)}"
        if not bar.disable:
            if trainer.config.monitor == "last":
                full = f"epoch {epoch.epoch}, {loss}, {score}"
            else:
                full = f"{loss}, {score}, best epoch {trainer.progress.best_epoch}"
            short = score.removeprefix("validation ")
            bar.set_postfix_str(_first_fitting(bar, [full, f"{loss}, {score}", score, short]))
        elif self._lines is not None and self._lines.is_due:
            place = self._place(epoch.repeat, epoch.member)
            number = f"epoch {epoch.epoch} of {self._run.config.epochs}"
            self._lines.show(", ".join([*place, number, loss, score]), self._share(trainer))

    def end_repeat(self) -> None:
        """Show the validation score of the repeat that was completed last, if there are several."""
        results, main = self._run.results, self._run.network.task.scores[0]
        if self._lines is not None and len(self._run.splits) > 1:
            score = _show_score(main, results[-1].validation.get(main.name))
            place = self._place(len(results) - 1)
            self._lines.show(", ".join([*place, f"validation {score}"]), self._share())

    def _place(self, number: int, member: int = -1) -> list[str]:
        """Return the repeat and fold of a split, and the member unless it is -1, if of several."""
        run = self._run
        folds = num_folds(run.config.split, run.graphs) or 1
        repeat, fold = divmod(number, folds)
        place = {
            "repeat": (repeat, len(run.splits) // folds),
            "fold": (fold, folds),
            "member": (member, run.config.ensemble if member >= 0 else 1),
        }
        return [f"{name} {i + 1} of {total}" for name, (i, total) in place.items() if total > 1]

    def _share(self, trainer: Trainer | None = None) -> float:
        """Return the share of all epochs of the run that are done."""
        config = self._run.config
        epochs = 0 if trainer is None else trainer.progress.epoch
        members = len(self._run.members) + epochs / config.epochs
        return (len(self._run.results) + members / config.ensemble) / len(self._run.splits)


def _show_score(score: Score, value: float | None) -> str:
    return f"{score.short} {score.show(value)}"


def _first_fitting(bar: tqdm, texts: Sequence[str]) -> str:
    """Return the first text that leaves 10 characters for the bar, else the last one."""
    for text in texts:
        # Without a width, the bar has 10 characters.
        line = bar.format_meter(**bar.format_dict | {"ncols": None, "postfix": text})
        if not bar.ncols or len(line) <= bar.ncols:
            return text
    return texts[-1]
