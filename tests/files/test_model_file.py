import json
import os
import stat
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from helpers.functions import lines, of_every_kind
from helpers.marks import POSIX, slow
from structsvm_papk.data.columns.terms import AdditiveFunction, Levels
from structsvm_papk.errors import InputError
from structsvm_papk.files import atomic
from structsvm_papk.files import tensors as tensor_file
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.model import _FILE as model_file
from structsvm_papk.files.model import Model, load_model, save_model

pytestmark = pytest.mark.portable

CERTIFICATE = {
    "objective": 0.5, "lower_bound": None, "gap": 1e-7, "status": "converged", "converged": True,
    "n_iter": 12,
}  # fmt: skip
NAMES = ("a", "b", "naïve", "d")
SLOPES = np.array([0.1, -1 / 3, 5e-324, 1.7e308])
MODEL = Model(
    function=lines(SLOPES, NAMES),
    k=3,
    surrogate="ts",
    alpha=0.01,
    solver="cutting_plane",
    certificate=CERTIFICATE,
    feature_names=NAMES,
    relevance_threshold=2.0,
)


@pytest.fixture
def saved(tmp_path):
    save_model(tmp_path / "m.model", MODEL)
    return tmp_path / "m.model"


def parts(path):
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def rewrite(path, header, array):
    """A file of these parts with the right checksum."""
    path.write_bytes(tensor_file.signed(header, array))


def change(header, **changes):
    """Change the description."""
    metadata = header["__metadata__"]
    metadata["model"] = json.dumps(json.loads(metadata["model"]) | changes)


def test_round_trip_is_exact_and_the_layout_is_safetensors(saved, tmp_path):
    model = load_model(saved)
    assert model.function.lines.tobytes() == SLOPES.tobytes() and model.package_version
    for name, value in vars(MODEL).items():
        assert name in ("function", "package_version") or getattr(model, name) == value
    header, array = parts(saved)
    start, end = header["slopes"]["data_offsets"]
    assert header["slopes"] == {"dtype": "F64", "shape": [4], "data_offsets": [start, start + 32]}
    assert (saved.stat().st_size - len(array)) % 8 == 0
    np.testing.assert_array_equal(np.frombuffer(array[start:end], "<f8"), SLOPES)
    named = replace(MODEL, feature_names=("0" * 64, *MODEL.feature_names[1:]))
    save_model(tmp_path / "zeros", named)  # as the checksum's place holds at first
    assert load_model(tmp_path / "zeros").feature_names == named.feature_names
    for n in range(10):  # one model is one file
        save_model(tmp_path / str(n), MODEL)
        assert (tmp_path / str(n)).read_bytes() == saved.read_bytes()


@pytest.mark.parametrize("every", [13, slow(1)])
def test_every_cut_and_every_flipped_byte_is_noticed_and_no_other_file_is_taken(saved, every):
    content = saved.read_bytes()
    for other in (b"[]", b"{}", b"[" * 200_000, b'{"__metadata__":{"a":"b"}} '):
        saved.write_bytes(struct.pack("<Q", len(other)) + other)
        with pytest.raises(InputError, match="is not a structsvm-papk model file"):
            load_model(saved)
    for size in range(0, len(content), every):
        saved.write_bytes(content[:size])
        with pytest.raises(InputError, match=r"m\.model"):
            load_model(saved)
    for place in range(0, len(content), every):
        damaged = bytearray(content)
        damaged[place] ^= 0x41
        saved.write_bytes(damaged)
        with pytest.raises(InputError, match=r"m\.model"):
            load_model(saved)


def test_a_file_is_refused_by_its_beginning_before_it_is_read(saved):
    def peak():
        tracemalloc.start()
        with pytest.raises(InputError) as error:
            load_model(saved)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return str(error.value), most

    long = 100_000_000
    content = saved.read_bytes()
    foreign = struct.pack("<Q", 16) + b'{"a":1}         '
    header = struct.pack("<Q", long - 8) + b'{"__metadata__": {"format": "another"'
    for begins, reason in (
        (content, "or is damaged"),
        (foreign, "is not a structsvm-papk model"),
        (header, "is not a structsvm-papk model"),
    ):
        saved.write_bytes(begins)
        os.truncate(saved, long)
        said, most = peak()
        assert reason in said and most < 1e6


@pytest.mark.parametrize(
    "entry",
    [
        *({"shape": [10**15]}, {"shape": [5]}, {"data_offsets": [0, 8 * 10**15]}),
        *({"data_offsets": [9, 41]}, {"dtype": "F32"}),
        *(None, True, 4, 0.5, "F64", [0, 32], {}),
    ],
)
def test_stated_sizes_are_not_trusted(saved, entry):
    header, array = parts(saved)
    if entry and isinstance(entry, dict):
        entry = header["slopes"] | entry
    header["slopes"] = entry
    rewrite(saved, header, array)
    with pytest.raises(InputError, match="is damaged"):
        load_model(saved)


def test_another_format_and_what_no_checksum_shows(saved):
    header, array = parts(saved)
    start, end = header["slopes"]["data_offsets"]
    wrong = np.array([1.0, np.nan, 0.0, 0.0]).tobytes()
    rewrite(saved, header, array[:start] + wrong + array[end:])
    with pytest.raises(InputError, match="not finite"):
        load_model(saved)
    for wrong in ("\ud800", "[]", "[" * 200_000, None):  # at first half a surrogate pair
        header["__metadata__"]["model"] = wrong
        rewrite(saved, header, array)
        with pytest.raises(InputError, match=r"its description is not|or is damaged"):
            load_model(saved)
    header["__metadata__"] |= {"model": "{}", "format_version": "4"}
    rewrite(saved, header, array)
    with pytest.raises(InputError, match=r"has model format 4, .* reads format 8: train again"):
        load_model(saved)


# --- terms ------------------------------------------------------------------------------------


def test_a_model_is_shown_in_ten_short_lines_without_arrays():
    function, _ = of_every_kind(True)
    for given in (
        MODEL,
        replace(MODEL, function=function),
        replace(MODEL, function=lines(range(99))),
    ):
        shown = repr(given).splitlines()
        assert shown[0] == f"Model of {given.n_features} columns, trained for k = 3"
        assert len(shown) <= 10 and max(map(len, shown)) <= 79 and "array" not in "".join(shown)
    assert shown[-1] == "and 93 more"


@pytest.mark.parametrize("levels", [("a", "ä", ""), (False, True), (1, 2, 5), (0.5, 1.5, 2.0)])
def test_levels_keep_their_type(tmp_path, levels):
    term = Levels("a", 0, levels, np.arange(len(levels)) / 3, 0.1)
    given = replace(MODEL, function=AdditiveFunction(of_levels=(term,)), feature_names=("a",))
    save_model(tmp_path / "m", given)
    found = load_model(tmp_path / "m").function.terms[0].levels
    assert found == levels and [*map(type, found)] == [*map(type, levels)]


def test_an_entry_that_is_missing_is_named(saved):
    description, arrays = model_file.read(saved)
    for name in ("k", "other_terms"):
        lacking = {key: value for key, value in description.items() if key != name}
        saved.write_bytes(model_file.encoded(lacking, arrays))
        with pytest.raises(InputError, match=rf"is damaged: bad or missing entry \('{name}'\)"):
            load_model(saved)


@POSIX
def test_paths_that_hold_no_file(tmp_path):
    with pytest.raises(InputError, match="null character"):
        load_model("a\0b")
    with pytest.raises(InputError, match="No such file"):
        load_model(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InputError, match="not a regular file"):
            load_model(path)


# --- writing ----------------------------------------------------------------------------------


@POSIX
def test_permissions_links_and_the_umask_are_kept(saved):
    saved.chmod(0o640)
    link = saved.with_name("link")
    link.symlink_to(saved)
    write_atomically(link, b"new")
    assert link.is_symlink() and saved.read_bytes() == b"new"
    before = os.umask(0o027)
    try:
        write_atomically(saved.with_name("new"), b"")
    finally:
        os.umask(before)
    for path in (saved, saved.with_name("new")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- temporary files: those of a write that was killed are removed, others are not ----------------


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
def test_a_write_that_finds_the_disk_full_leaves_nothing(tmp_path):
    import resource  # on POSIX alone

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot write"):
            write_atomically(tmp_path / "kept", bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@POSIX
def test_a_file_that_another_process_is_writing_is_left_alone(tmp_path, killed):
    with atomic._temporary_beside(tmp_path / "kept") as file:
        killed(tmp_path / "kept")
        write_atomically(tmp_path / "kept", b"one")
        check_writable(tmp_path / "kept")
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(file.name), "kept"])
        os.replace(file.name, tmp_path / "kept")
    assert os.listdir(tmp_path) == ["kept"]


def test_without_locks_files_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    write_atomically(tmp_path / "kept", b"new")
    assert (tmp_path / "kept").read_bytes() == b"new" and os.listdir(tmp_path) == ["kept"]
