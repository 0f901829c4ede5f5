"""Lines about fits, for the log and for `verbose`; loads no scikit-learn."""

import logging
import time

from structsvm_papk._types import Callback
from structsvm_papk.errors import check_callback
from structsvm_papk.solvers.solver import Progress

_LOGGER = logging.getLogger("structsvm_papk")
_LOGGER.addHandler(logging.NullHandler())
_INTERVAL = 1.0  # seconds between lines


class Log:
    """Lines about one fit, at most one a second: level INFO of the log `structsvm_papk`.

    With `verbose` they are printed, too.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a line, and somebody reads it."""
        wanted = self.verbose or _LOGGER.isEnabledFor(logging.INFO)
        return bool(wanted) and time.monotonic() - self._last >= _INTERVAL

    def say(self, text: str) -> None:
        """Say it, due or not."""
        self._last = time.monotonic()
        _LOGGER.info(text)
        if self.verbose:
            print(text, flush=True)

    def watching(self, callback: Callback | None) -> Callback:
        """A solver's callback that says where the solver is, beside what another one does."""
        check_callback(callback)

        def watch(progress: Progress) -> object:
            if self.due():
                certified = progress.lower_bound > -float("inf")
                bound = f"gap {progress.gap:.1e}" if certified else "no lower bound"
                where = f"iteration {progress.iteration}, {progress.seconds:.0f} s"
                self.say(f"{where}: objective {progress.objective:.6g}, {bound}")
            return callback is not None and callback(progress)

        return watch
