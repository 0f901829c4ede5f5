"""What a solver asks of a checkpoint: to keep the result so far, from which another run goes on.

Where and how it is kept is not known here; `structsvm_papk.files.checkpoint` writes it to a folder.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_type
from structsvm_papk.solvers.oracle import Oracle
from structsvm_papk.solvers.result import SolverResult, Status

_FARTHEST = 1e120  # entry of a start; its square, and that of its multiples, must have room
_LIMITS = ("tol", "max_iter", "time_limit")  # of a solver: when to stop, not where to go


class Keeper:
    """The checkpoint of one solve; this one keeps nothing.

    `kept` is the result so far of an earlier run, to go on from: of an `Status.is_final` status
    where that run ended by itself under the same limits. `notes` say what went wrong with files.
    """

    def __init__(self) -> None:
        self.kept: SolverResult | None = None
        self.notes: list[str] = []

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.kept is not None and self.kept.status.is_final

    def restoring(self) -> AbstractContextManager[None]:
        """The body takes what it needs of `kept`; where that fails, the checkpoint is at fault."""
        return nullcontext()

    def offer(self, snapshot: Callable[[], SolverResult]) -> None:
        """Keep the result so far if it is time to; called between iterations."""

    def finish(self, snapshot: Callable[[], SolverResult], status: Status) -> None:
        """Keep the result of a run that has ended, or was broken off, with that status."""


class CheckpointStore(ABC):
    """Where solvers keep results so far: the argument `checkpoint` of ``solve``."""

    @abstractmethod
    def opened(
        self, identity: Mapping[str, Any], limits: Mapping[str, Any]
    ) -> AbstractContextManager[Keeper]:
        """The `Keeper` of one solve, for as long as the context lasts.

        `identity` is what the result belongs to (solver, settings, problem): another run is
        refused. `limits` say when the solver stops.
        """

    @abstractmethod
    def part(self, name: str) -> CheckpointStore:
        """The store of one of several solves."""


@contextmanager
def opened(
    checkpoint: CheckpointStore | None, solver: Any, oracle: Oracle, **more: Any
) -> Iterator[Keeper]:
    """Begin or go on: the `Keeper` of one solve for as long as the context lasts.

    The solver's fields say what the result belongs to, but for the limits on when to stop.
    """
    if checkpoint is None:
        yield Keeper()
        return
    check_store(checkpoint)
    problem = oracle.fingerprint()
    if problem is None:
        raise InputError("a checkpoint needs an oracle with a method fingerprint()")
    settings = {field.name: getattr(solver, field.name) for field in fields(solver)}
    limits = {name: settings.pop(name, None) for name in _LIMITS}
    settings.pop("qp_solver", None)
    identity = {"solver": type(solver).__name__, **settings, **more, "problem": problem}
    with checkpoint.opened(identity, limits) as keeper:
        yield keeper


def check_store(checkpoint: Any) -> None:
    """Raise `TypeError` unless a checkpoint is one, or None."""
    check_type(
        "checkpoint", checkpoint, CheckpointStore, "a files.Checkpoint(folder)", optional=True
    )


def numbers(extra: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Entries of `SolverResult.extra` that are single numbers; ValueError where one is not."""
    return {name: vector(extra, name, None).item() for name in names}


def vector(extra: Mapping[str, Any], name: str, size: int | None) -> Array:
    """An entry of `SolverResult.extra` as real numbers of that length; None: a single number."""
    if name not in extra:
        raise ValueError(f"{name} is missing")
    value = np.asarray(extra[name])
    if value.shape != (() if size is None else (size,)):
        raise ValueError(f"{name} has shape {value.shape}")
    return value if size is None else value.astype(np.float64)


def digest_of(start: Array) -> str:
    """A short text that tells one start from another, where the result depends on it."""
    return hashlib.sha256(np.asarray(start, np.float64).tobytes()).hexdigest()[:16]


def finite_start(w: Any, n_features: int, name: str) -> Array:
    """A starting point as an array of its own; refused where it does not fit or overflows."""
    w = np.array(as_floats(name, w))
    if w.shape != (n_features,) or not np.isfinite(w).all():
        raise InputError(
            f"{name} must be a finite vector of length {n_features}, got shape {w.shape}"
        )
    if np.abs(w).max(initial=0.0) > _FARTHEST:
        raise InputError(
            f"{name} is too far out, with an entry of {np.abs(w).max():.3g}: its square has no "
            f"room in double precision; scale it to entries of at most {_FARTHEST:g}"
        )
    return w
