"""A surrogate of one's own: after an edit of what it does it is another one."""

import importlib
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.portable


SOURCE = """
from dataclasses import dataclass

import numpy as np

import helping
from structsvm_papk.surrogates import Surrogate

FACTOR = 1.0


class Base(Surrogate):
    margin = 1.25


@dataclass(frozen=True)
class Mine(Base):
    \"\"\"A hinge.\"\"\"

    name = "mine"
    top_negatives_only = shift_invariant = True

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        for u in range(first, last):
            start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
            order = middle + np.argsort(-scores[middle:stop], kind="stable")
            top = order[: self.depth_of_list(order.size)]
            apart = self.margin - scores[start:middle, None] + scores[top]
            hinge, slope = helping.hinge(FACTOR * apart)
            slope = FACTOR * slope / hinge.size
            values[u] = hinge.mean()
            coef[start:stop] = 0
            coef[start:middle] = -slope.sum(axis=1)
            coef[top] = slope.sum(axis=0)
"""
HELPING = """
import numpy as np


def hinge(apart):
    return np.maximum(apart, 0.0), np.where(apart > 0.0, 1.0, 0.0)
"""


@pytest.fixture
def version(tmp_path, monkeypatch):
    """``version(old, new)``: the surrogate of the two files with one text replaced."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(old="", new=""):
        assert old in SOURCE + HELPING
        for name, text in (("mine", SOURCE), ("helping", HELPING)):
            (tmp_path / f"{name}.py").write_text(text.replace(old, new) if old else text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("mine").Mine(2)

    yield make
    for name in ("mine", "helping"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 1.0", "FACTOR = 1.01"),  # a constant of the module
        ("margin = 1.25", "margin = 1.26"),  # of a base class
        ("np.maximum(apart, 0.0)", "np.maximum(apart, 0.01)"),  # a function of another module
        ("apart > 0.0, 1.0", "apart > 0.0, 1.001"),  # slopes only
        ('kind="stable")', 'kind="stable")[::-1]'),  # which negatives count
    ],
)
def test_an_edit_of_what_it_does_is_another_surrogate(version, old, new):
    assert version().settings() != version(old, new).settings()


@pytest.mark.parametrize(
    ("old", "new"), [("A hinge.", "Hinges."), ("class Base", "# a base\n\n\nclass Base")]
)
def test_an_edit_that_changes_no_number_is_none(version, old, new):
    assert version().settings() == version(old, new).settings()


def test_another_process_knows_it_again(version, tmp_path):
    known = str(version().settings())
    code = "import mine; print(mine.Mine(2).settings())"
    env = os.environ | {
        "PYTHONHASHSEED": "1",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == known, done.stderr
