"""Checkpoints: the state of a solver in a folder, from which a stopped run goes on.

Two files take turns, so the state before the last one is always there, whatever happens to a write.
Each is complete or absent (`write_atomically`) and carries a checksum (`tensor_file`). A state
belongs to one solver with its settings, to one problem, told by its fingerprint, and to one version
of this package: cuts that another one took are not believed.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError, as_path, check_callback, check_number
from structsvm_papk.files.atomic import check_writable, held, remove_leftovers, write_atomically
from structsvm_papk.files.tensors import TensorFile, package_version
from structsvm_papk.solvers.keeping import CheckpointStore, Keeper
from structsvm_papk.solvers.result import Progress, SolverResult, Status

_FILE = TensorFile("checkpoint", version=1)
_NAMES = ("state-0.checkpoint", "state-1.checkpoint")
_CUTS = ("slopes", "intercepts", "blocks")
_EXTRA = "extra."  # before the names of what only the solver reads


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read; the run goes on."""


@dataclass(frozen=True)
class Checkpoint(CheckpointStore):
    """Where a solver keeps its state, and how often; the argument `checkpoint` of ``solve``.

    One solve at a time may use a folder; another is refused.

    Parameters
    ----------
    folder : path-like
        Made where it does not exist. It belongs to one solve; see `part` for several.
    interval : float
        Seconds from the end of one write to the next. The end of a solve is always written.
    tell : callable, optional
        Called with a sentence when a run is resumed, and when a file cannot be written or read.
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

    def warn(self, sentence: str) -> None:
        """Tell that a file cannot be written or read."""
        if self.tell is not None:
            self.tell(sentence)
        else:
            warnings.warn(sentence, CheckpointWarning, stacklevel=2)

    @contextmanager
    def opened(
        self, identity: Mapping[str, Any], limits: Mapping[str, Any]
    ) -> Iterator["FolderKeeper"]:
        """The keeper of one solve, with the folder locked for as long as the context lasts."""
        known = {**identity, "version": package_version()}
        with held(self.folder):
            yield FolderKeeper(self, {k: _plain(v) for k, v in known.items()}, limits)


def as_checkpoint(given: "Checkpoint | PathLike | None") -> Checkpoint | None:
    """A `Checkpoint` from one, from a folder, or None."""
    if given is None or isinstance(given, Checkpoint):
        return given
    return Checkpoint(as_path(given, "checkpoint"))


class FolderKeeper(Keeper):
    """The checkpoint of one solve: what is in the folder, and the way to write more."""

    def __init__(
        self, checkpoint: Checkpoint, identity: Mapping[str, Any], limits: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._checkpoint, self._identity, self._limits = checkpoint, identity, dict(limits)
        self._paths = [checkpoint.folder / name for name in _NAMES]
        self._sequence = 0
        self._failed = False
        remove_leftovers(checkpoint.folder)
        for path in self._paths:
            check_writable(path)
        self._load()
        self._written = time.monotonic()

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """The body takes what it needs of `kept`; where that fails, the file is at fault."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{self._checkpoint.folder} holds a state that cannot be one of this run "
                f"({type(error).__name__}: {error}). Delete the folder to start again"
            ) from None

    def offer(self, snapshot: Callable[[], SolverResult]) -> None:
        """Write the result so far where the interval since the last write has passed."""
        if time.monotonic() - self._written >= self._checkpoint.interval:
            self.finish(snapshot, Status.INTERRUPTED)

    def finish(self, snapshot: Callable[[], SolverResult], status: Status) -> None:
        """Write the result so far; where that fails, say so once and keep the files that are there.

        The status says whether the run ended by itself.
        """
        arrays = pack(snapshot())
        description = {
            "identity": self._identity,
            "limits": self._limits,
            "status": str(status),
            "sequence": self._sequence + 1,
            "shapes": {name: list(array.shape) for name, array in arrays.items()},
        }
        try:
            content = _FILE.encoded(description, arrays)
            write_atomically(self._paths[(self._sequence + 1) % 2], content)
        except InputError as error:
            if not self._failed:
                self._say(f"No checkpoint: {error}. The run goes on.")
            self._failed = True
        else:
            self._sequence += 1
        self._written = time.monotonic()

    def _load(self) -> None:
        """Take the newest state that can be read."""
        states, errors = [], []
        for path in filter(Path.exists, self._paths):
            try:
                states.append(_read(path))
            except InputError as error:
                errors.append(str(error))
        if errors and not states:
            raise InputError(f"{'; '.join(errors)}. Delete the folder to start again")
        if errors:
            self._say(f"{errors[0]}; the checkpoint before it is used.")
        if not states:
            return
        description, arrays = max(states, key=lambda state: state[0]["sequence"])
        self._refuse_other(description["identity"])
        self._sequence = description["sequence"]
        with self.restoring():
            kept = unpack(arrays, Status(description["status"]))
        if description["limits"] != self._limits:
            kept = replace(kept, status=Status.INTERRUPTED)  # other limits: there may be more to do
        self.kept = kept
        if self._checkpoint.tell is not None:
            self._checkpoint.tell(f"resumed from {self._checkpoint.folder}")

    def _refuse_other(self, other: Mapping[str, Any]) -> None:
        own = self._identity
        names = [name for name in {**own, **other} if other.get(name) != own.get(name)]
        if not names:
            return
        differences = [
            "the data, the surrogate or k differs"
            if name == "problem"
            else f"{name} was {other.get(name)!r}, is {own.get(name)!r}"
            for name in names
        ]
        raise InputError(
            f"{self._checkpoint.folder} holds the checkpoint of another run: "
            f"{'; '.join(differences)}. Choose another folder"
        )

    def _say(self, sentence: str) -> None:
        self.notes.append(sentence)
        self._checkpoint.warn(sentence)


def pack(result: SolverResult) -> dict[str, Array]:
    """The numbers of a result by name."""
    cuts = {} if result.cuts is None else dict(zip(_CUTS, result.cuts, strict=True))
    extra = {f"{_EXTRA}{name}": value for name, value in result.extra.items()}
    own = {
        "w": result.w,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "history": pack_history(result.history),
    }
    return {name: np.asarray(value) for name, value in {**own, **cuts, **extra}.items()}


def unpack(arrays: Mapping[str, Array], status: Status) -> SolverResult:
    """A result, back from its numbers; KeyError, ValueError or TypeError where they are wrong."""
    if arrays["w"].ndim != 1:
        raise ValueError(f"w has shape {arrays['w'].shape}")
    return SolverResult(
        arrays["w"].astype(np.float64),
        arrays["objective"].item(),
        arrays["lower_bound"].item(),
        status,
        tuple(unpack_history(arrays["history"])),
        cuts=_cuts_of(arrays),
        extra={
            name.removeprefix(_EXTRA): array
            for name, array in arrays.items()
            if name.startswith(_EXTRA)
        },
    )


def _cuts_of(arrays: Mapping[str, Array]) -> tuple[Array, Array, Array] | None:
    slopes, intercepts, blocks = _CUTS
    return (arrays[slopes], arrays[intercepts], arrays[blocks]) if slopes in arrays else None


def pack_history(history: Iterable[Progress]) -> Array:
    """The progress of a run as an array, one row an iteration."""
    rows = [tuple(vars(entry).values()) for entry in history]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(fields(Progress)))


def unpack_history(array: Array) -> list[Progress]:
    """The progress of a run, back from its array."""
    types = get_type_hints(Progress).values()
    return [
        Progress(*(kind(value) for kind, value in zip(types, row, strict=True)))
        for row in array.tolist()
    ]


def _read(path):
    description, arrays = _FILE.read(path)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    known = {"identity": dict, "limits": dict, "status": str, "sequence": int, "shapes": dict}
    if not all(isinstance(description.get(name), kind) for name, kind in known.items()):
        raise _FILE.damaged(path, "an entry is missing")
    if description["shapes"] != shapes:
        raise _FILE.damaged(path, "the arrays have other shapes than described")
    if any(np.isnan(array).any() for array in arrays.values()):
        raise _FILE.damaged(path, "it holds NaN")
    return description, arrays


def _plain(value):
    """As JSON gives it back."""
    if isinstance(value, np.generic):
        value = value.item()
    return list(value) if isinstance(value, tuple | list) else value
