"""Checkpoints: the state of a solver in a folder, from which a stopped run goes on.

Two files take turns, so the state before the last one is always there, whatever happens to a write.
Each is complete or absent (`write_atomically`) and carries a checksum (`tensor_file`). A state
belongs to one solver with its settings, to one problem, told by its fingerprint, and to one version
of this package: cuts that another one took are not believed.
"""

import re
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import get_type_hints

import numpy as np

from structsvm_papk.errors import InputError, check_number
from structsvm_papk.files.atomic import check_writable, held, remove_leftovers, write_atomically
from structsvm_papk.files.tensors import TensorFile, package_version
from structsvm_papk.solvers.result import Progress, Status

_FILE = TensorFile("checkpoint", version=1)
_NAMES = ("state-0.checkpoint", "state-1.checkpoint")
_LIMITS = ("tol", "max_iter", "time_limit")  # of a solver: when to stop, not where to go
_ENDED = frozenset(Status) - {
    Status.INTERRUPTED,
    Status.STOPPED,
    Status.FAILED,
    Status.INCONSISTENT,
}


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written or read; the run goes on."""


@dataclass(frozen=True)
class Checkpoint:
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
    tell: object = field(default=None, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "folder", Path(self.folder))
        check_number("the interval of a checkpoint", self.interval, least=0)

    def part(self, name):
        """The checkpoint of one of several solves: a folder inside this one."""
        safe = re.sub(r"[^\w.+-]+", "_", name).strip("._")
        return Checkpoint(self.folder / safe, self.interval, self.tell)


@contextmanager
def opened(checkpoint, solver, oracle, **more):
    """Begin or go on: the `Keeper` of one solve for as long as the context lasts, or None.

    Parameters
    ----------
    checkpoint : Checkpoint, path-like or None
    solver : dataclass
        Its fields say what the state belongs to, but for the limits on when to stop.
    oracle : any with `fingerprint`
    **more
        What else the state belongs to.

    Raises
    ------
    InputError
        The folder cannot be written, is in use, or holds the state of another run; or no file in it
        can be read; or the oracle has no fingerprint.
    """
    checkpoint = as_checkpoint(checkpoint)
    if checkpoint is None:
        yield None
        return
    if not hasattr(oracle, "fingerprint"):
        raise InputError("a checkpoint needs an oracle with a method fingerprint()")
    settings = {name: getattr(solver, name) for name in solver.__dataclass_fields__}
    limits = {name: settings.pop(name, None) for name in _LIMITS}
    settings.pop("qp_solver", None)
    identity = {"solver": type(solver).__name__, **settings, **more}
    identity |= {"problem": oracle.fingerprint(), "version": package_version()}
    identity = {name: _plain(value) for name, value in identity.items()}
    with held(checkpoint.folder):
        yield Keeper(checkpoint, identity, limits)


def as_checkpoint(given):
    """A `Checkpoint` from one, from a folder, or None."""
    return given if given is None or isinstance(given, Checkpoint) else Checkpoint(given)


class Keeper:
    """The checkpoint of one solve: what was found in the folder, and the way to write more.

    Attributes
    ----------
    identity : dict
        What the state belongs to.
    state : dict of str to ndarray, or None
        The state to go on from.
    status : Status or None
        How the run ended, where it ended by itself under the same limits: nothing is left to do.
    notes : list of str
        What went wrong with files.
    """

    def __init__(self, checkpoint, identity, limits):
        self._checkpoint, self.identity, self._limits = checkpoint, identity, limits
        self._paths = [checkpoint.folder / name for name in _NAMES]
        self._sequence = 0
        self._failed = False
        self.state, self.status, self.notes = None, None, []
        remove_leftovers(checkpoint.folder)
        for path in self._paths:
            check_writable(path)
        self._load()
        self._written = time.monotonic()

    def due(self):
        """Whether the interval since the last write has passed."""
        return time.monotonic() - self._written >= self._checkpoint.interval

    def save(self, state, status=None):
        """Write a state; where that fails, say so once and keep the files that are there.

        Parameters
        ----------
        state : dict of str to array-like of numbers
            Entries that are None are left out.
        status : Status, optional
            Where the run has ended.
        """
        arrays = {name: np.asarray(v) for name, v in state.items() if v is not None}
        description = {
            "identity": self.identity,
            "limits": self._limits,
            "status": None if status is None else str(status),
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

    @contextmanager
    def taking(self):
        """The state, of which the body takes what it needs; where that fails, the file is at fault.

        Raises
        ------
        InputError
            An entry is missing, or has another shape, although the checksum is right.
        """
        try:
            yield self.state
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{self._checkpoint.folder} holds a state that cannot be one of this run "
                f"({type(error).__name__}: {error}). Delete the folder to start again"
            ) from None

    def _load(self):
        """Take the newest state that can be read."""
        read, errors = [], []
        for path in filter(Path.exists, self._paths):
            try:
                read.append(_read(path))
            except InputError as error:
                errors.append(str(error))
        if errors and not read:
            raise InputError(f"{'; '.join(errors)}. Delete the folder to start again")
        if errors:
            self._say(f"{errors[0]}; the checkpoint before it is used.")
        if not read:
            return
        description, self.state = max(read, key=lambda found: found[0]["sequence"])
        self._refuse_other(description["identity"])
        self._sequence = description["sequence"]
        ended = description["status"] in _ENDED and description["limits"] == self._limits
        self.status = Status(description["status"]) if ended else None
        if self._checkpoint.tell is not None:
            self._checkpoint.tell(f"resumed from {self._checkpoint.folder}")

    def _refuse_other(self, found):
        names = dict.fromkeys([*self.identity, *found])
        other = [name for name in names if found.get(name) != self.identity.get(name)]
        if not other:
            return
        told = [
            "the data, the surrogate or k differs"
            if name == "problem"
            else f"{name} was {found.get(name)!r}, is {self.identity.get(name)!r}"
            for name in other
        ]
        raise InputError(
            f"{self._checkpoint.folder} holds the checkpoint of another run: {'; '.join(told)}. "
            "Choose another folder"
        )

    def _say(self, sentence):
        self.notes.append(sentence)
        if self._checkpoint.tell is not None:
            self._checkpoint.tell(sentence)
        else:
            warnings.warn(sentence, CheckpointWarning, stacklevel=2)


def take(target, state, entries, **sizes):
    """Set attributes of an object from the entries of a state.

    Parameters
    ----------
    target : object
    state : dict of str to ndarray
    entries : dict of str to str
        What each is: 'number', or a vector whose length is one of the sizes. With a question mark
        at the end it may be absent, which gives None.
    **sizes : int

    Raises
    ------
    ValueError
        An entry is absent or of another shape.
    """
    for name, kind in entries.items():
        value, size = state.get(name), sizes.get(kind.rstrip("?"))
        if value is not None:
            if value.shape != (() if size is None else (size,)):
                raise ValueError(f"{name} has shape {value.shape}")
            value = np.asarray(value, dtype=np.float64) if value.ndim else value.item()
        elif not kind.endswith("?"):
            raise ValueError(f"{name} is missing")
        setattr(target, name, value)


def pack_history(history):
    """The progress of a run as an array, one row an iteration."""
    rows = [tuple(vars(entry).values()) for entry in history]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(fields(Progress)))


def unpack_history(array):
    """The progress of a run, back from its array."""
    types = get_type_hints(Progress).values()
    return [
        Progress(*(kind(value) for kind, value in zip(types, row, strict=True)))
        for row in array.tolist()
    ]


def _read(path):
    description, arrays = _FILE.read(path)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    known = {"identity": dict, "limits": dict, "sequence": int, "shapes": dict}
    if not all(isinstance(description.get(name), kind) for name, kind in known.items()):
        raise _FILE.damaged(path, "an entry is missing")
    if description["shapes"] != shapes:
        raise _FILE.damaged(path, "the arrays have other shapes than described")
    if any(np.isnan(array).any() for array in arrays.values()):
        raise _FILE.damaged(path, "it holds numbers that are none (NaN)")
    return description, arrays


def _plain(value):
    """As JSON gives it back."""
    if isinstance(value, np.generic):
        value = value.item()
    return list(value) if isinstance(value, tuple | list) else value
