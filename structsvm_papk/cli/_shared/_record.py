"""What a run's JSON says about the run itself, and how two results compare."""

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError
from structsvm_papk.files.fingerprint import fingerprint_of, fingerprint_of_file
from structsvm_papk.files.tensors import package_version

PROGRAM = "structsvm-papk"
_PACKAGES = (
    *("numpy", "scipy", "numba", "scikit-learn", "cvxpy", "piqp", "highspy", "threadpoolctl"),
    *("pandas", "pyarrow", "matplotlib", "lightgbm", "statsmodels", "dask"),
)
_COUNTS = ("seed", "threads", "jobs")
# what differs between runs that agree: time, places, and the effort on another machine
_FREE = ("run", "seconds", "date", "message", "model", "output", "file")
_EFFORT = ("n_iter", "data_passes", "row_visits")


def record(
    arguments: Sequence[str], settings: dict[str, Any], inputs: Sequence[Path]
) -> dict[str, Any]:
    """The `run` object of a JSON output: what ran, where, with what, on which files (SHA-256)."""
    return {
        "command": [PROGRAM, *arguments],
        "directory": os.getcwd(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "versions": versions(),
        **{name: settings[name] for name in _COUNTS if name in settings},
        "files": {str(path): fingerprint_of_input(path) for path in inputs},
    }


def versions() -> dict[str, str]:
    """Versions of this package and of those that it works with, where they are installed."""
    installed = {PROGRAM: package_version()}
    for name in _PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def fingerprint_of_input(path: PathLike) -> str:
    """SHA-256 of a file, or of all files of a folder with their names."""
    path = Path(path)
    if not path.is_dir():
        return fingerprint_of_file(path)
    files = sorted(p for p in path.rglob("*") if p.is_file())
    parts = [(str(p.relative_to(path)), fingerprint_of_file(p)) for p in files]
    return fingerprint_of(*(text for part in parts for text in part))


def load_result(path: PathLike) -> dict[str, Any]:
    """The JSON of an earlier run, checked to be one: its `run` names a command of this program."""
    try:
        content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON") from None
    run = content.get("run") if isinstance(content, dict) else None
    if not isinstance(run, dict) or not _is_command(run.get("command")):
        raise InputError(f"{path} does not say which {PROGRAM} command made it (key 'run')")
    if not isinstance(run.get("files"), dict):
        raise InputError(f"{path} does not say which files were read (run.files)")
    return content


def _is_command(command: Any) -> bool:
    texts = isinstance(command, list) and all(isinstance(text, str) for text in command)
    return bool(texts and len(command) > 1 and command[0] == PROGRAM)


def check_inputs(run: dict[str, Any]) -> None:
    """Raise `InputError` unless every file that a run read is there and has not changed."""
    for name, expected in run["files"].items():
        if not Path(name).exists():
            raise InputError(f"{name} is missing (the result was made in {run.get('directory')})")
        if fingerprint_of_input(name) != expected:
            raise InputError(f"{name} has changed since the result was made")


@dataclass(frozen=True)
class Difference:
    """One entry in which two results differ."""

    place: str  # such as runs[0].objective
    before: object
    now: object
    within: bool  # both are numbers that agree within the tolerance
    effort: bool  # it counts work, such as iterations, which is no part of the result

    @property
    def matters(self) -> bool:
        """Whether the results are not the same."""
        return not (self.within or self.effort)


def differences(before: object, now: object, tol: float) -> list[Difference]:
    """Every entry in which two JSON values differ, time and places left out.

    Numbers agree within the tolerance where ``|a - b| <= tol * max(1, |a|, |b|)``.
    """
    return list(_compare("", before, now, tol))


def _compare(place: str, before: Any, now: Any, tol: float) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            if key not in _FREE and not key.endswith("seconds"):
                here = f"{place}.{key}".lstrip(".")
                yield from _compare(here, before.get(key), now.get(key), tol)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (one, two) in enumerate(zip(before, now, strict=True)):
            yield from _compare(f"{place}[{i}]", one, two, tol)
    elif before != now or type(before) is not type(now):
        effort = place.rpartition(".")[2] in _EFFORT
        yield Difference(place, before, now, _near(before, now, tol), effort)


def _near(one: Any, two: Any, tol: float) -> bool:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (one, two))
    return numbers and math.isclose(one, two, rel_tol=tol, abs_tol=tol)
