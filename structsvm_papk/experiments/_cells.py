"""Folders that belong to one run, and the finished parts that it keeps there."""

import hashlib
import json
from pathlib import Path

from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import remove_leftovers, write_atomically

RECORD = "run.json"
_AGE = 3600.0  # seconds after which no process can still be writing a part


def claim(folder, identity):
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
    _make(folder)
    write_atomically(record, json.dumps(identity, indent=1).encode())
    return folder


def check_folder(folder):
    """Raise `InputError` where a path is taken by something that is no folder."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"{folder} is no folder")


class Cells:
    """Finished parts of a run, a JSON file each in a folder that is claimed, if there is one."""

    def __init__(self, folder=None, identity=None):
        self.folder = None if folder is None else claim(folder, identity) / "cells"
        if self.folder is not None:
            _make(self.folder)
            remove_leftovers(self.folder, _AGE)

    def path(self, key):
        """File of a part; the key is of what JSON can say."""
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:20]
        return self.folder / f"{name}.json"

    def load(self, key):
        """What a part gave, or None where it is not there; a damaged file is refused."""
        if self.folder is None or not self.path(key).is_file():
            return None
        try:
            return json.loads(self.path(key).read_text())
        except (OSError, ValueError):
            raise InputError(f"{self.path(key)} is damaged; delete it and run again") from None

    def save(self, key, content):
        """Keep what a part gave: a dict or list of what JSON can say."""
        if self.folder is not None:
            plain = json.dumps(content, default=lambda number: number.item())  # of NumPy
            write_atomically(self.path(key), plain.encode())

    def get(self, key, compute):
        """What a part gave, computed and kept where it is not there."""
        found = self.load(key)
        if found is None:
            found = compute()
            self.save(key, found)
        return found


def _make(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None


def _refuse_other(record, identity):
    try:
        found = json.loads(record.read_text())
    except (ValueError, OSError):
        raise InputError(f"{record} cannot be read; choose a new folder") from None
    found = found if isinstance(found, dict) else {}
    other = [key for key in {**identity, **found} if found.get(key) != identity.get(key)]
    if other:
        raise InputError(
            f"{record.parent} belongs to another run: {', '.join(other)} differ; results are not "
            "mixed, choose another folder"
        )
