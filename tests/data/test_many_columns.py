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
    columns = tables.choose_columns("f", names_of(n), like=like, ignore=ignore)
    assert len(columns.features) == n - len(ignore)
    return Name.compared


@pytest.mark.parametrize("n", [500, 1000])
def test_names_are_looked_up_not_searched(n):
    model = SimpleNamespace(feature_names=tuple(names_of(n)[2:][::-1]), n_features=n)
    assert comparisons(n) <= 10 * n
    assert comparisons(n, like=model) <= 10 * n
    assert comparisons(n, ignore=tuple(names_of(n // 2)[2:])) <= 10 * n


def work_on_columns(path, n):
    """Write a table and a model, and read them in every way: seconds of the processor."""
    names = tuple(f"x{i}" for i in range(n))
    labels = {"label": np.arange(10) % 2, "group": np.arange(10) // 5}
    parquet.write_table(pa.table(labels | {x: np.arange(10.0) for x in names}), path)
    certificate = dict.fromkeys(("objective", "lower_bound", "gap"), 0.5)
    certificate |= {"status": "converged", "converged": True, "n_iter": 1}
    begun = time.process_time()
    assert read_table(path, like=read_table(path)).n_features == n
    assert ParquetFiles.open(path).rows(2, 7)[0].shape == (5, n)
    kinds = {"group": tables.Kind.ID, names[-1]: tables.Kind.NUMBER}
    assert len(tables.read_columns(path, "parquet", kinds)) == 2
    model = Model(np.ones(n), 1, "avg", 1.0, "cutting_plane", certificate, feature_names=names)
    save_model(path.with_suffix(".model"), model)
    assert load_model(path.with_suffix(".model")).feature_names == names
    return time.process_time() - begun


@pytest.mark.slow
def test_work_on_the_columns_of_a_file_is_not_quadratic(tmp_path):
    """Linear work takes 16 times as long, quadratic work 256 times; the least of three runs."""
    small, large = (
        min(work_on_columns(tmp_path / f"{n}.parquet", n) for _ in range(3)) for n in (500, 8000)
    )
    assert large < 64 * small + 0.05
