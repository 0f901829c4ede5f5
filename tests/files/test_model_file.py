import json
import os
import stat
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from helpers.marks import POSIX
from structsvm_papk.data.columns.knots import Knots
from structsvm_papk.errors import InputError
from structsvm_papk.files import tensors as tensor_file
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.model import Model, load_model, save_model

pytestmark = pytest.mark.portable

CERTIFICATE = {
    "objective": 0.5, "lower_bound": None, "gap": 1e-7, "status": "converged", "converged": True,
    "n_iter": 12,
}  # fmt: skip
MODEL = Model(
    coef=np.array([0.1, -1 / 3, 5e-324, 1.7e308]),
    k=3,
    surrogate="ts",
    alpha=0.01,
    solver="cutting_plane",
    certificate=CERTIFICATE,
    feature_names=("a", "b", "naïve", "d"),
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
    assert model.coef.tobytes() == MODEL.coef.tobytes() and model.package_version
    for name, value in vars(MODEL).items():
        assert name in ("coef", "package_version") or getattr(model, name) == value
    header, array = parts(saved)
    assert header["coef"] == {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]}
    assert len(array) == 32 and (saved.stat().st_size - 32) % 8 == 0
    np.testing.assert_array_equal(np.frombuffer(array, "<f8"), MODEL.coef)
    named = replace(MODEL, feature_names=("0" * 64, *MODEL.feature_names[1:]))
    save_model(tmp_path / "zeros", named)  # as the checksum's place holds at first
    assert load_model(tmp_path / "zeros").feature_names == named.feature_names
    for n in range(10):  # one model is one file
        save_model(tmp_path / str(n), MODEL)
        assert (tmp_path / str(n)).read_bytes() == saved.read_bytes()


def test_every_cut_and_every_flipped_byte_is_noticed_and_no_other_file_is_taken(saved):
    content = saved.read_bytes()
    for other in (b"[]", b"{}", b"[" * 200_000, b'{"__metadata__":{"a":"b"}} '):
        saved.write_bytes(struct.pack("<Q", len(other)) + other)
        with pytest.raises(InputError, match="is not a structsvm-papk model file"):
            load_model(saved)
    for size in range(len(content)):
        saved.write_bytes(content[:size])
        with pytest.raises(InputError, match=r"m\.model"):
            load_model(saved)
    for place in range(len(content)):
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
        (content, "its arrays have"),
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
        *({"data_offsets": [8, 40]}, {"dtype": "F32"}),
        *(None, True, 4, 0.5, "F64", [0, 32], {}),
    ],
)
def test_stated_sizes_are_not_trusted(saved, entry):
    header, array = parts(saved)
    header["coef"] = header["coef"] | entry if entry and isinstance(entry, dict) else entry
    rewrite(saved, header, array)
    with pytest.raises(InputError, match="stated size"):
        load_model(saved)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("k", ["3", 0, True, 2**63, 10**400]),
        ("alpha", [None, 10**400, float("nan"), -1]),
        ("feature_names", [["a"], [1, 2, 3, 4], 4, "abcd", dict.fromkeys("abcd", 1), list("aabc")]),
        ("first_index", ["1", -5, True]),
        ("relevance_threshold", [float("inf"), 10**400]),
        ("certificate", [{}, 3, CERTIFICATE | {"objective": [[]]}, CERTIFICATE | {"gap": np.nan}]),
        ("certificate", [list(CERTIFICATE)]),
        ("scale_rule", ["z", 1, [], True]),
    ],
)
def test_signed_nonsense_is_refused(saved, name, values):
    for value in values:
        header, array = parts(saved)
        change(header, **{name: value})
        rewrite(saved, header, array)
        with pytest.raises(InputError, match=r"is damaged: (bad or missing|1 feature)"):
            load_model(saved)
        save_model(saved, MODEL)


def test_another_format_and_what_no_checksum_shows(saved):
    header, array = parts(saved)
    wrong = np.array([1.0, np.nan, 0.0, 0.0]).tobytes()
    rewrite(saved, header, wrong)
    with pytest.raises(InputError, match="not finite"):
        load_model(saved)
    for wrong in ("\ud800", "[]", "[" * 200_000, None):  # at first half a surrogate pair
        header["__metadata__"]["model"] = wrong
        rewrite(saved, header, array)
        with pytest.raises(InputError, match="its description is not"):
            load_model(saved)
    header["__metadata__"]["format_version"] = "4"
    rewrite(saved, header, array)
    with pytest.raises(InputError, match=r"has model format 4, .* reads format 6: train again"):
        load_model(saved)


# --- curves -----------------------------------------------------------------------------------

KNOTS = Knots.of([np.array([-1.0, 0.1, 1 / 3]), np.array([7.0])])
CURVES = replace(MODEL, feature_names=("a", "naïve"), knots=KNOTS)


@pytest.mark.parametrize("missing", [False, True])
def test_a_model_of_curves_comes_back_bit_for_bit(tmp_path, missing):
    path = tmp_path / "m"
    coef = np.array([0.1, -1 / 3, 0.7, -2.0])
    given = replace(CURVES, coef=coef, missing_coef=np.array([0.1, -1 / 3]) if missing else None)
    save_model(path, given)
    model = load_model(path)
    assert model.coef.tobytes() == given.coef.tobytes()
    assert model.knots.positions.tobytes() == KNOTS.positions.tobytes()
    assert model.knots.starts.dtype == np.int64
    assert model.knots.starts.tolist() == [0, 3, 4]
    assert (model.n_features, model.names) == (2, ("a", "naïve"))
    X = np.array([[-9.0, 0.0], [0.0, 1.0], [0.3, 1.0], [50.0, 7.0]])
    groups = "one_list" if missing else None
    if missing:
        X[1, 0] = np.nan
    scores = model.predict(X, groups)
    np.testing.assert_array_equal(scores, given.predict(X, groups))
    curves = KNOTS.curves(coef, "ab", np.zeros(2))
    filled = np.where(np.isnan(X), -9.0, X)
    expected = curves[0](filled[:, 0]) + curves[1](filled[:, 1]) + missing * np.isnan(X[:, 0]) * 0.1
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-14)
    save_model(tmp_path / "again", model)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("positions", "starts", "said"),
    [
        ([-1.0, 0.1, 0.1, 7.0], [0, 3, 4], "the knots of a column must increase"),
        ([-1.0, 0.3, 0.1, 7.0], [0, 3, 4], "the knots of a column must increase"),
        ([-1.0, 0.1, 0.3, 7.0], [0, 4, 4], "must increase|one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [0, 3, 2, 4], "must increase|one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [1, 3, 4], "one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [0, 3, 5], "one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [0, 3], "one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [0], "one or more for every column"),
        ([-1.0, 0.1, 0.3, 7.0], [0.0, 3.0, 4.0], "one or more for every column"),
        ([-1.0, 0.1, 0.3], [0, 2, 3], "one or more for every column"),
        ([-1.0, np.nan, 0.3, 7.0], [0, 3, 4], "a coefficient is not finite"),
        ([-1.0, 0.1, 0.3, 7.0], [0, 1, 2, 3, 4], "feature_names must be a list of 4"),
    ],
)
def test_damaged_knots_are_refused(tmp_path, positions, starts, said):
    bad = Knots(np.array(positions), np.array(starts))
    save_model(tmp_path / "m", replace(CURVES, knots=bad))
    with pytest.raises(InputError, match=rf"is damaged.*({said})"):
        load_model(tmp_path / "m")


def test_knots_without_their_starts_are_refused(tmp_path):
    save_model(tmp_path / "m", CURVES)
    header, array = parts(tmp_path / "m")
    header["other"] = header.pop("knot_starts")
    rewrite(tmp_path / "m", header, array)
    with pytest.raises(InputError, match="knots and knot_starts must both be there, or neither"):
        load_model(tmp_path / "m")


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


@POSIX
def test_check_writable(tmp_path):
    check_writable(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    for path, reason in [
        (tmp_path, "directory"),
        (tmp_path / "absent" / "new", "No such file"),
        ("/dev/null", "not a regular file"),
    ]:
        with pytest.raises(InputError, match=reason):
            check_writable(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Not a directory"):
        check_writable(tmp_path / "file" / "new")
