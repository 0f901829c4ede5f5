"""Temporary files: those of a write that was killed are removed, others are not."""

import os

import pytest

from helpers.marks import POSIX
from structsvm_papk.errors import InputError
from structsvm_papk.files import atomic
from structsvm_papk.files.atomic import check_writable, write_atomically


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """A write that ends before the rename and before anything is removed."""

    def write(path):
        with monkeypatch.context() as patch:
            patch.setattr(atomic.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            patch.setattr(atomic.os, "unlink", lambda *_: None)
            with pytest.raises(KeyboardInterrupt):
                write_atomically(path, b"part")

    return write


@POSIX
@pytest.mark.parametrize("then", ["write", "check", "refused write"])
def test_what_a_kill_left_is_removed_by_whoever_writes_there_next(tmp_path, killed, then):
    for name in ("kept", "model", "x" * 200):
        killed(tmp_path / name)
    assert len(os.listdir(tmp_path)) == 3
    if then == "check":
        check_writable(tmp_path / "kept")
    elif then == "write":
        write_atomically(tmp_path / "kept", b"new")
    else:
        (tmp_path / "folder").mkdir()
        with pytest.raises(InputError, match="cannot write"):
            write_atomically(tmp_path / "folder", b"new")
    assert os.listdir(tmp_path) == {"check": [], "write": ["kept"]}.get(then, ["folder"])


@POSIX
def test_a_file_that_another_process_is_writing_is_left_alone(tmp_path, killed):
    with atomic._temporary_beside(tmp_path / "kept") as file:
        killed(tmp_path / "kept")
        write_atomically(tmp_path / "kept", b"one")
        check_writable(tmp_path / "kept")
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(file.name), "kept"])
        os.replace(file.name, tmp_path / "kept")
    assert os.listdir(tmp_path) == ["kept"]


@POSIX
def test_a_file_that_was_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock = atomic.fcntl.flock
    removed = []

    def remove_first(file, how):
        if not removed:
            removed.append(file.name)
            os.unlink(file.name)
        lock(file, how)

    monkeypatch.setattr(atomic.fcntl, "flock", remove_first)
    write_atomically(tmp_path / "kept", b"new")
    assert removed and (tmp_path / "kept").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["kept"]


def test_without_locks_files_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    write_atomically(tmp_path / "kept", b"new")
    assert (tmp_path / "kept").read_bytes() == b"new" and os.listdir(tmp_path) == ["kept"]
