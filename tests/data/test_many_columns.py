"""Work on columns grows as their number does: counted where it can be, else timed generously."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from structsvm_papk.data import tables
from structsvm_papk.data.readers import read_table
from structsvm_papk.data.sources import ParquetFiles
from structsvm_papk.files.model import Model, load_model, save_model

pytestmark = pytest.mark.portable

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


class Name(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def names_of(n):
    return [Name("label"), Name("group"), *(Name(f"x{i}") for i in range(n))]


def comparisons(n, like=None, ignore=()):
    Name.compared = 0
    columns = tables.choose_columns("f", names_of(n), tables.Roles(like=like, ignore=ignore))
    assert len(columns.features) == n - len(ignore)
    return Name.compared


@pytest.mark.parametrize("n", [500, 1000])
def test_names_are_looked_up_not_searched(n):
    model = SimpleNamespace(feature_names=tuple(names_of(n)[2:][::-1]), n_features=n)
    assert comparisons(n) <= 10 * n
    assert comparisons(n, like=model) <= 10 * n
    assert comparisons(n, ignore=tuple(names_of(n // 2)[2:])) <= 10 * n


def seconds(work, n, tmp_path):
    """Processor time of a piece of work on a table of n columns."""
    path = tmp_path / f"{n}.parquet"
    columns = {f"x{i}": np.arange(10.0) + i for i in range(n)}
    labels = {"label": np.arange(10) % 2, "group": np.arange(10) // 5}
    parquet.write_table(pa.table(labels | columns), path)
    begun = time.process_time()
    work(path, n)
    return time.process_time() - begun


def least_seconds(work, n, tmp_path):
    """Of three runs, so that a busy machine does not count."""
    return min(seconds(work, n, tmp_path) for _ in range(3))


def read_twice(path, n):
    first = read_table(path)
    assert read_table(path, like=first).n_features == n


def read_in_pieces(path, n):
    source = ParquetFiles.open(path)
    assert source.rows(2, 7)[0].shape == (5, n)


def read_two_columns(path, n):
    kinds = {"group": tables.Kind.ID, f"x{n - 1}": tables.Kind.NUMBER}
    assert len(tables.read_columns(path, "parquet", kinds)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("work", [read_twice, read_in_pieces, read_two_columns])
def test_work_on_the_columns_of_a_parquet_file_is_not_quadratic(tmp_path, work):
    """Linear work takes 16 times as long, quadratic work 256 times."""
    small, large = (least_seconds(work, n, tmp_path) for n in (500, 8000))
    assert large < 64 * small + 0.05


def test_the_names_in_a_model_file(tmp_path):
    certificate = dict.fromkeys(("objective", "lower_bound", "gap"), 0.5)
    certificate |= {"status": "converged", "converged": True, "n_iter": 1}

    def save_and_load(path, n):
        names = tuple(f"x{i}" for i in range(n))
        model = Model(np.ones(n), 1, "avg", 1.0, "cutting_plane", certificate, feature_names=names)
        save_model(path.with_suffix(".model"), model)
        assert load_model(path.with_suffix(".model")).feature_names == names

    small, large = (seconds(save_and_load, n, tmp_path) for n in (500, 8000))
    assert large < 64 * small + 0.05
