"""How baselines without an oracle count their work."""

import time
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.solvers.result import Progress, SolverResult, Status


class Recorder:
    """Collects the history of a run that has no lower bound."""

    def __init__(self, callback: Callback | None = None) -> None:
        self.started, self.callback = time.perf_counter(), callback
        self.history: list[Progress] = []
        self.best, self.stopped = np.inf, False

    def add(self, objective: float, data_passes: Any) -> bool:
        """Note one step; returns whether the callback asks to stop."""
        self.best = min(self.best, float(objective))
        seconds = time.perf_counter() - self.started
        entry = Progress(len(self.history) + 1, seconds, data_passes, self.best, -np.inf, 0)
        self.history.append(entry)
        self.stopped = bool(self.callback is not None and self.callback(entry))
        return self.stopped

    def result(
        self, w: Array, objective: float, alpha: float = 0.0, notes: Any = ()
    ) -> SolverResult:
        """The outcome as a `SolverResult` without a certificate."""
        status = Status.STOPPED if self.stopped else Status.FINISHED
        history = tuple(self.history)
        return SolverResult(w, float(objective), -np.inf, status, history, alpha, notes=notes)
