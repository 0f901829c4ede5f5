"""Checkpoints: the result so far of a solver in a folder, from which a stopped run goes on.

The file is complete or absent (`write_atomically`) and carries a checksum (`TensorFile`). It
belongs to one solver with its settings, to one problem, told by its fingerprint, and to one version
of this package: cuts that another one took are not believed.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk._version import __version__
from structsvm_papk.errors import InputError, as_path, check_callback, check_number, warn
from structsvm_papk.files.atomic import (
    FolderInUse,
    check_writable,
    locked_folder,
    write_atomically,
)
from structsvm_papk.files.tensors import TensorFile
from structsvm_papk.solvers.result import Progress, SolverResult, Status
from structsvm_papk.solvers.solver import CheckpointSession, CheckpointStore

_FILE = TensorFile("checkpoint", version=2)
_NAME = "result.checkpoint"
_CUTS = ("slopes", "intercepts", "blocks")  # the parts of `SolverResult.cuts`
_EXTRA = "extra."  # before the names of what only the solver reads


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the run goes on."""


@dataclass(frozen=True)
class Checkpoint(CheckpointStore):
    """Where a solver saves its result so far, and how often: the argument `checkpoint`.

    One solve at a time may use a folder; another is refused.

    Parameters
    ----------
    folder : path-like
        Made where it does not exist. It belongs to one solve; see `part` for several.
    interval : float
        Seconds from the end of one write to the next. The end of a solve is always written.
    tell : callable, optional
        Called with a sentence when a run is resumed, and when a file cannot be written.
        By default the latter is a `CheckpointWarning`.
    """

    folder: Path
    interval: float = 60.0
    tell: Callable[[str], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", as_path(self.folder, "folder of a checkpoint"))
        check_callback(self.tell, "tell")
        check_number("the interval of a checkpoint", self.interval, least=0.0)

    def part(self, name: str) -> "Checkpoint":
        """The checkpoint of one of several solves: a folder inside this one."""
        safe = re.sub(r"[^\w.+-]+", "_", name).strip("._")
        return Checkpoint(self.folder / safe, self.interval, self.tell)

    def optional(self) -> "OptionalCheckpoint":
        """The same, for a solve that can do without it."""
        return OptionalCheckpoint(self.folder, self.interval, self.tell)

    def warn(self, sentence: str) -> None:
        """Tell that a file cannot be written."""
        if self.tell is not None:
            self.tell(sentence)
        else:
            warn(sentence, CheckpointWarning)

    @contextmanager
    def opened(
        self, identity: Mapping[str, Any], progress: type[Progress] = Progress
    ) -> Iterator[CheckpointSession]:
        """The session of one solve, with the folder locked for as long as the context lasts."""
        # as it will be read again, so that the two can be compared: tuples become lists
        text = json.dumps({**identity, "version": __version__}, default=np.generic.item)
        with locked_folder(self.folder):
            yield FolderSession(self, json.loads(text), progress)


class OptionalCheckpoint(Checkpoint):
    """The checkpoint of a solve that goes on without one where its folder cannot be used."""

    @contextmanager
    def opened(
        self, identity: Mapping[str, Any], progress: type[Progress] = Progress
    ) -> Iterator[CheckpointSession]:
        """The session of one solve; one that keeps nothing where the folder allows no other."""
        nothing_kept = CheckpointSession()
        with ExitStack() as stack:
            try:
                session = stack.enter_context(super().opened(identity, progress))
            except FolderInUse:  # by a run that keeps the same result
                session = nothing_kept
            except InputError as error:
                nothing_kept.notes.append(f"No checkpoint: {error}. The run goes on.")
                self.warn(nothing_kept.notes[0])
                session = nothing_kept
            yield session


def as_checkpoint(given: "Checkpoint | PathLike | None") -> Checkpoint | None:
    """A `Checkpoint` from one, from a folder, or None."""
    if given is None or isinstance(given, Checkpoint):
        return given
    return Checkpoint(as_path(given, "checkpoint"))


class FolderSession(CheckpointSession):
    """The checkpoint of one solve: what is in the folder, and the way to write more."""

    def __init__(
        self, checkpoint: Checkpoint, identity: Mapping[str, Any], progress: type[Progress]
    ) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self._identity = identity
        self._path = checkpoint.folder / _NAME
        for path in checkpoint.folder.glob(f".{_NAME}.*.tmp"):  # of processes that were killed
            with suppress(OSError):
                path.unlink()
        check_writable(self._path)
        if self._path.exists():
            saved_identity, self.saved = read_saved(self._path, progress)
            self._refuse_other(saved_identity)
            if checkpoint.tell is not None:
                checkpoint.tell(f"resumed from {checkpoint.folder}")
        self._written = time.monotonic()

    def offer(self, result: Callable[[], SolverResult]) -> None:
        """Write the result so far where the interval since the last write has passed."""
        if time.monotonic() - self._written >= self._checkpoint.interval:
            self.save(result())

    def save(self, result: SolverResult) -> None:
        """Write a result; where that fails, say so once and keep the file that is there."""
        description = {"identity": self._identity, "status": str(result.status)}
        try:
            write_atomically(self._path, _FILE.encoded(description, _arrays_of(result)))
        except InputError as error:
            if not self.notes:
                self.notes.append(f"No checkpoint: {error}. The run goes on.")
                self._checkpoint.warn(self.notes[0])
        self._written = time.monotonic()

    def _refuse_other(self, saved: Mapping[str, Any]) -> None:
        differences = []
        for name in {**self._identity, **saved}:
            before = saved.get(name)
            now = self._identity.get(name)
            if before == now:
                continue
            if name == "problem":  # fingerprints, which say nothing to a reader
                differences.append("the data, the surrogate or k differs")
            else:
                differences.append(f"{name} was {before!r}, is {now!r}")
        if differences:
            raise InputError(
                f"{self._checkpoint.folder} holds the checkpoint of another run: "
                f"{'; '.join(differences)}. Choose another folder"
            )


def read_saved(
    path: PathLike, progress: type[Progress] = Progress
) -> tuple[dict[str, Any], SolverResult]:
    """What a checkpoint belongs to, and the result in it; `InputError` where there is none."""
    try:
        description, arrays = _FILE.read(path)
    except InputError as error:
        raise InputError(f"{error}. Delete the folder to start again") from None
    try:
        return description["identity"], _result_of(arrays, Status(description["status"]), progress)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        reason = f"no run writes such a result ({type(error).__name__}: {error})"
        raise _FILE.damaged(path, f"{reason}. Delete the folder to start again") from None


def _arrays_of(result: SolverResult) -> dict[str, Array]:
    """The numbers of a result by name."""
    named: dict[str, Any] = {
        "w": result.w,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "steeper": result.steeper,
    }
    # a row an iteration, a column each field of the solver's `Progress`
    progress_fields = fields(result.history[0] if result.history else Progress)
    columns = [result.curve(field.name) for field in progress_fields]
    named["history"] = np.stack(columns, axis=1).astype(np.float64)
    if result.cuts is not None:
        named.update(zip(_CUTS, result.cuts, strict=True))
    for name, value in result.extra.items():
        named[f"{_EXTRA}{name}"] = value
    return {name: np.asarray(value) for name, value in named.items()}


def _result_of(
    arrays: Mapping[str, Array], status: Status, progress: type[Progress]
) -> SolverResult:
    """A result, back from its numbers; KeyError, ValueError or TypeError where they are wrong."""
    if arrays["w"].ndim != 1 or any(np.isnan(array).any() for array in arrays.values()):
        raise ValueError(f"w has shape {arrays['w'].shape}, or there is NaN")
    cuts = None
    if _CUTS[0] in arrays:
        slopes, intercepts, blocks = (arrays[name] for name in _CUTS)
        cuts = (slopes, intercepts, blocks)
    extra = {}
    for name, array in arrays.items():
        if name.startswith(_EXTRA):
            extra[name.removeprefix(_EXTRA)] = array
    return SolverResult(
        w=arrays["w"].astype(np.float64),
        objective=arrays["objective"].item(),
        lower_bound=arrays["lower_bound"].item(),
        status=status,
        history=_history_of(arrays["history"], progress),
        cuts=cuts,
        steeper=arrays["steeper"].item(),
        extra=extra,
    )


def _history_of(numbers: Array, progress: type[Progress]) -> tuple[Progress, ...]:
    """The iterations, a row each; whole numbers, which the file holds as floats, as such again."""
    types = get_type_hints(progress)
    history = []
    for row in numbers.tolist():
        entries = {name: types[name](x) for name, x in zip(types, row, strict=True)}
        history.append(progress(**entries))
    return tuple(history)
