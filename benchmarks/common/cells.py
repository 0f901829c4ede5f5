"""Folders that belong to one run, and the finished parts that it keeps there."""

import hashlib
import json
import os
from pathlib import Path

from structsvm_papk.errors import InputError

RECORD = "run.json"


def claim(folder, identity):
    """Make a new or empty folder this run's; refuse one claimed with another identity."""
    folder, identity = Path(folder), json.loads(json.dumps(identity))
    record = folder / RECORD
    if record.is_file():
        known = _read(record)
        other = [key for key in {**identity, **known} if known.get(key) != identity.get(key)]
        if other:
            raise InputError(
                f"{folder} belongs to another run: {', '.join(other)} differ; results are not "
                "mixed, choose another folder"
            )
        return folder
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no {RECORD}; choose a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}") from None
    write(record, json.dumps(identity, indent=1).encode())
    return folder


class Cells:
    """Finished parts of a run, a JSON file each in a folder that is claimed, if there is one."""

    def __init__(self, folder=None, identity=None):
        self.folder = None if folder is None else claim(folder, identity) / "cells"
        if self.folder is not None:
            self.folder.mkdir(exist_ok=True)

    def path(self, key):
        """File of a part; the key is of what JSON can say."""
        name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:20]
        return self.folder / f"{name}.json"

    def load(self, key):
        """What a part gave, or None where it is not there; a damaged file is refused."""
        if self.folder is None or not self.path(key).is_file():
            return None
        return _read(self.path(key))

    def save(self, key, content):
        """Keep what a part gave: a dict or list of what JSON can say."""
        if self.folder is not None:
            plain = json.dumps(content, default=lambda number: number.item())  # of NumPy
            write(self.path(key), plain.encode())

    def get(self, key, compute):
        """What a part gave, computed and kept where it is not there."""
        known = self.load(key)
        if known is None:
            known = compute()
            self.save(key, known)
        return known


def write(path, content):
    """Write bytes so that a process that is killed leaves no part of a file under this name."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        raise InputError(f"{path} is damaged; delete it and run again") from None
