"""Folders that belong to one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import write_atomically

RECORD = "run.json"


def claim(folder: PathLike, identity: dict[str, Any]) -> Path:
    """Make a new or empty folder this run's; refuse one claimed with another identity."""
    folder, identity = Path(folder), json.loads(json.dumps(identity))
    record = folder / RECORD
    check_folder(folder)
    if record.is_file():
        _refuse_other(record, identity)
        return folder
    unfinished = f".{RECORD}.*.tmp"  # of a process that was killed in the middle of this
    if folder.is_dir() and not all(path.match(unfinished) for path in folder.iterdir()):
        raise InputError(
            f"{folder} is not empty and holds no {RECORD}, so it is no folder of an earlier run; "
            "choose a new folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None
    write_atomically(record, json.dumps(identity, indent=1).encode())
    return folder


def check_folder(folder: PathLike) -> None:
    """Raise `InputError` where a path is taken by something that is no folder."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"{folder} is no folder")


def _refuse_other(record, identity):
    try:
        known = json.loads(record.read_text())
    except (ValueError, OSError):
        raise InputError(f"{record} cannot be read; choose a new folder") from None
    known = known if isinstance(known, dict) else {}
    other = [key for key in {**identity, **known} if known.get(key) != identity.get(key)]
    if other:
        raise InputError(
            f"{record.parent} belongs to another run: {', '.join(other)} differ; results are not "
            "mixed, choose another folder"
        )
