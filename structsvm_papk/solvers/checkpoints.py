"""What a solver asks of a checkpoint: to save the result so far, from which another run goes on.

Where and how it is saved is not known here; `structsvm_papk.files.checkpoint` writes to a folder.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_type
from structsvm_papk.solvers.oracle import Oracle
from structsvm_papk.solvers.result import SolverResult

_LIMITS = ("tol", "max_iter", "time_limit", "qp_solver")  # when to stop, not where to go


class CheckpointSession:
    """The checkpoint of one solve; this one saves nothing.

    `saved` is the result so far of an earlier run, from which this one starts warm; `notes` say
    what went wrong with files.
    """

    def __init__(self, saved: SolverResult | None = None) -> None:
        self.saved, self.notes = saved, list[str]()

    def offer(self, result: Callable[[], SolverResult]) -> None:
        """Save the result so far if it is time to; called between iterations."""

    def save(self, result: SolverResult) -> None:
        """Save the result of a run that ends."""


class CheckpointStore(ABC):
    """Where solvers save results so far: the argument `checkpoint` of ``solve``."""

    @abstractmethod
    def opened(self, identity: Mapping[str, Any]) -> AbstractContextManager[CheckpointSession]:
        """The `CheckpointSession` of one solve, for as long as the context lasts.

        `identity` is what the result belongs to (solver, settings, problem): another run is
        refused.
        """

    @abstractmethod
    def part(self, name: str) -> CheckpointStore:
        """The store of one of several solves."""


@contextmanager
def open_checkpoint(
    checkpoint: CheckpointStore | None, solver: Any, oracle: Oracle, **more: Any
) -> Iterator[CheckpointSession]:
    """Begin or go on: the session of one solve for as long as the context lasts.

    The solver's fields say what the result belongs to, but for the limits on when to stop.
    """
    if checkpoint is None:
        yield CheckpointSession()
        return
    check_store(checkpoint)
    problem = oracle.fingerprint()
    if problem is None:
        raise InputError("a checkpoint needs an oracle with a method fingerprint()")
    names = [field.name for field in fields(solver) if field.name not in _LIMITS]
    settings = {name: getattr(solver, name) for name in names}
    identity = {"solver": type(solver).__name__, **settings, **more, "problem": problem}
    with checkpoint.opened(identity) as session:
        yield session


def check_store(checkpoint: Any) -> None:
    """Raise `TypeError` unless a checkpoint is one, or None."""
    check_type(
        "checkpoint", checkpoint, CheckpointStore, "a files.Checkpoint(folder)", optional=True
    )


def digest_of(start: Array) -> str:
    """A short text that tells one start from another, where the result depends on it."""
    return hashlib.sha256(np.asarray(start, np.float64).tobytes()).hexdigest()[:16]
