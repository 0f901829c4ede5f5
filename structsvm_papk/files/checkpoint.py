"""The result so far of a solver in a file, from which a later solve starts warm.

It holds the point, the cuts or dual variables, and what problem they are of: the risk by its
fingerprint, solver, alpha, and the version of this package. The file is complete or absent, and
carries a checksum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk._version import __version__
from structsvm_papk.errors import InputError, as_path, check_number
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.tensors import TensorFile
from structsvm_papk.solvers.oracle import BlockCuts
from structsvm_papk.solvers.solver import SolverResult, Status, WarmStart

_FILE = TensorFile("checkpoint", version=4)
_DUAL = "dual."  # before the names of dual variables


class _Version(NamedTuple):
    """What tells a file from others that have had its name."""

    number: int
    time: int
    size: int


_ABSENT = _Version(0, 0, 0)


def _version_of(path: Path) -> _Version:
    try:
        status = path.stat()
    except OSError:
        return _ABSENT
    return _Version(status.st_ino, status.st_mtime_ns, status.st_size)


@dataclass(frozen=True)
class Checkpoint:
    """Where a solver keeps its result so far, and how often: the argument `checkpoint`.

    Parameters
    ----------
    path : path-like
        A file of its own for each solve, which need not exist.
    interval : float
        Seconds from the end of one write to the next. The end of a solve is always written.
    choice : dict, optional
        What folds chose, which `PAPKRanker` keeps beside the result.
    """

    path: Path
    interval: float = 60.0
    choice: Mapping[str, Any] | None = field(default=None, repr=False)
    # the file as this run has read or written it last
    _known: _Version | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", as_path(self.path, "path of a checkpoint"))
        check_number("the interval of a checkpoint", self.interval, least=0.0)

    def kept_choice(self) -> dict[str, Any] | None:
        """The `choice` in the file; None without one."""
        if not self.path.exists():
            return None
        return self._content()[0]["choice"] or None

    def read(self, identity: Mapping[str, Any]) -> SolverResult | None:
        """The result that the file holds, of the problem with that identity; None without one.

        A result of another choice of folds, for the same lists and settings, is none.

        Raises
        ------
        InputError
            The file is damaged or of another problem, or could not be replaced.
        """
        check_writable(self.path)
        self._note_version()
        if not self.path.exists():
            return None
        description, arrays = self._content()
        kept = description["identity"]
        now = _with_version(identity)
        if not kept:
            raise self.damaged("it names no problem")
        if self._chosen_again(description["choice"]):
            return None
        differences = [_difference(name, kept.get(name), now[name]) for name in now]
        differences = [text for text in differences if text]
        if differences:
            raise InputError(
                f"{self.path} holds the result of another run: {'; '.join(differences)}; "
                f"{self._advice}"
            )
        note = f"It went on from {self.path}."
        try:
            return _result_of(description, arrays, float(identity["alpha"]), note)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"no run writes such a result ({type(error).__name__}: {error})"
            raise self.damaged(reason) from None

    def damaged(self, reason: str) -> InputError:
        """The error of a file that is damaged."""
        return InputError(f"{_FILE.damaged(self.path, reason)}; {self._advice}")

    @property
    def _advice(self) -> str:
        return f"delete {self.path} to start again, or choose another file"

    def _content(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What the file says and holds; `identity` and `choice` are empty where it has none."""
        try:
            description, arrays = _FILE.read(self.path)
        except InputError as error:
            raise InputError(f"{error}; {self._advice}") from None
        for name in ("identity", "choice"):
            if not isinstance(description.setdefault(name, {}), dict):
                raise self.damaged(f"its {name} is none")
        return description, arrays

    def _chosen_again(self, kept: dict[str, Any]) -> bool:
        """Whether folds have chosen another setting for the same lists since."""
        if self.choice is None or not kept:
            return False
        same = kept.get("given") == self.choice["given"]
        return same and kept.get("setting") != self.choice["setting"]

    def _note_version(self) -> None:
        object.__setattr__(self, "_known", _version_of(self.path))

    def write(self, identity: Mapping[str, Any], result: SolverResult) -> None:
        """Replace the file by one that holds this result.

        Raises
        ------
        InputError
            The file cannot be written, or another run has written it since it was read.
        """
        if self._known is not None and _version_of(self.path) not in (self._known, _ABSENT):
            raise InputError(
                f"another run writes {self.path}: give each run a checkpoint of its own"
            )
        arrays: dict[str, Array] = {"w": result.w}
        last = result._warm_start
        arrays["lipschitz_factor"] = np.array(last.lipschitz_factor)
        description: dict[str, Any] = {"identity": _with_version(identity)}
        if last.duals is not None:
            for name, array in last.duals.arrays().items():
                arrays[_DUAL + name] = array
        elif last.cuts is not None:
            arrays["slopes"] = last.cuts.slopes
            arrays["intercepts"] = last.cuts.intercepts
            arrays["blocks"] = last.cuts.blocks
            description["n_blocks"] = last.cuts.n_blocks
            description["layout"] = last.cuts.layout
        if self.choice is not None:
            description["choice"] = dict(self.choice)
        write_atomically(self.path, _FILE.encoded(description, arrays))
        self._note_version()


def as_checkpoint(given: Checkpoint | PathLike) -> Checkpoint:
    """A `Checkpoint` of its own from one, or from a path."""
    if isinstance(given, Checkpoint):
        return replace(given)
    return Checkpoint(as_path(given, "checkpoint"))


def _with_version(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {**identity, "version": __version__}


def _difference(name: str, kept: Any, now: Any) -> str:
    """What differs, in words; empty where nothing does."""
    if kept == now:
        return ""
    if name == "problem":  # fingerprints, which say nothing to a reader
        return "the data (or how they are cut into partitions), the surrogate or k differs"
    return f"{name} was {kept!r}, is {now!r}"


def _result_of(
    description: Mapping[str, Any], arrays: Mapping[str, Array], alpha: float, note: str
) -> SolverResult:
    """A warm start from what a file holds; which risk it is of is for the solver to add."""
    duals = {
        name.removeprefix(_DUAL): array for name, array in arrays.items() if name.startswith(_DUAL)
    }
    return SolverResult(
        w=arrays["w"].astype(np.float64),
        objective=np.inf,
        lower_bound=-np.inf,
        status=Status.INTERRUPTED,
        alpha=alpha,
        notes=(note,),
        _warm_start=WarmStart(
            cuts=_cuts_of(description, arrays) if "slopes" in arrays else None,
            lipschitz_factor=arrays["lipschitz_factor"].item(),
            duals=duals or None,
        ),
    )


def _cuts_of(description: Mapping[str, Any], arrays: Mapping[str, Array]) -> BlockCuts:
    slopes = arrays["slopes"]
    intercepts = arrays["intercepts"]
    blocks = arrays["blocks"]
    n_cuts = slopes.shape[:1]
    if slopes.ndim != 2 or intercepts.shape != n_cuts or blocks.shape != n_cuts:
        raise ValueError("cuts of different numbers")
    if not (np.isfinite(slopes).all() and np.isfinite(intercepts).all()):
        raise ValueError("cuts that are not finite")
    if blocks.dtype.kind != "i" or blocks.min(initial=0) < 0:
        raise ValueError("blocks that are no numbers of blocks")
    n_blocks = description["n_blocks"]
    return BlockCuts(slopes, intercepts, blocks, n_blocks, description["layout"], risk=None)
