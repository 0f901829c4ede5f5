"""A surrogate of one's own: after an edit it is another one, in another process the same."""

import importlib
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

from helpers.own import PowerPairs
from structsvm_papk import PAPKRanker, PAPKRankerCV
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import Surrogate, check_surrogate
from structsvm_papk.surrogates.own_code import code_digest

pytestmark = pytest.mark.portable

LISTS = linear_lists(n_users=12, n_items=14, n_features=3, noise=1.0, relevant_share=0.3, seed=0)
ROWS = LISTS.X, LISTS.y, LISTS.groups

# the parts that the edits below change stand in capitals or are named; no score of a fingerprint's
# lists reaches them: margins there are below 2.5
SOURCE = '''
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from numba import njit

import helping
from structsvm_papk.surrogates import Surrogate

LIMIT = 20.0
TABLE = np.array([1.0, 30.0])
OPTIONS = {"far": [40.0]}


def above(values, far):
    return np.where(values > far, 1.0, 0.0)


@lru_cache
def kept():
    return 50.0


@njit
def compiled(x):
    return x if x < 60.0 else 0.0


def made(far):
    def inner(values):
        return above(values, far)
    return inner


class Base(Surrogate):
    top = 70.0

    def steepest(self, hinge):
        return above(hinge, 80.0)


@dataclass(frozen=True)
class Mine(Base):
    """The hinge, and nothing that a list of the fingerprint would show."""

    name = "mine"
    top_negatives_only = shift_invariant = True
    beyond = made(90.0)
    part = partial(above, far=100.0)

    @property
    def bottom(self):
        return 110.0

    @staticmethod
    def fixed(far=120.0):
        return far

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        from helping import imported

        extra = (LIMIT, TABLE, OPTIONS, kept, compiled, self.top, self.bottom, Mine.fixed)
        for u in range(first, last):
            start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
            order = middle + np.argsort(-scores[middle:stop], kind="stable")
            top = order[: self.depth_of_list(order.size)]
            hinge = np.maximum(1 - scores[start:middle, None] + scores[top], 0)
            far = self.steepest(hinge) + helping.more(hinge) + imported(hinge)
            slope = (hinge > 0) / hinge.size
            values[u] = hinge.mean() + 0 * far.sum()
            coef[start:stop] = 0
            coef[start:middle] = -slope.sum(axis=1)
            coef[top] = slope.sum(axis=0)
'''
HELPING = """
import numpy as np


def more(hinge):
    return np.where(hinge > 130.0, 1.0, 0.0)


def imported(hinge):
    return np.where(hinge > 140.0, 1.0, 0.0)
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


@pytest.mark.parametrize("edited", [f"{number}.0" for number in range(20, 150, 10)])
def test_every_edit_is_another_surrogate(version, edited):
    old, new = version(), version(edited, edited.replace("0.0", "1.0"))
    assert old.settings()[2:] == new.settings()[2:]  # the lists do not show it
    assert old.settings() != new.settings()


def test_what_changes_no_number_is_no_edit(version):
    known = version().settings()
    assert version().settings() == known
    for old, new in (
        ("The hinge, and", "Hinges, and"),
        ("        for u in range", "        # users\n        for u in range"),
        ("class Base", "\n\nclass Base"),
    ):
        assert version(old, new).settings() == known


def test_another_process_knows_it_again(version, tmp_path):
    known = str(version().settings())
    code = "import mine; print(mine.Mine(2).settings())"
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert done.stdout.strip() == known, done.stderr


def test_what_cannot_be_read_is_the_same_in_this_process_only():
    held = replace(PowerPairs(2), exponent=threading.Lock())
    lock = replace(PowerPairs(2), exponent=threading.Lock())
    digests = [code_digest(one) for one in (held, held, lock)]
    assert digests[0] == digests[1] != digests[2]


def test_a_checkpoint_and_kept_fits_of_the_old_code_are_not_taken(version, tmp_path):
    how = {"alpha": 0.1, "max_iter": 2, "checkpoint": tmp_path / "one"}
    with pytest.warns(UserWarning):
        PAPKRanker(surrogate=version(), **how).fit(*ROWS)
    with pytest.raises(InputError, match="holds the checkpoint of another run: the data, the surr"):
        PAPKRanker(surrogate=version("80.0", "0.8"), **how).fit(*ROWS)
    kept = tmp_path / "many"
    counts = []
    for surrogate in (version(), version(), version("80.0", "0.8")):
        search = PAPKRankerCV(surrogates=[surrogate], alphas=[0.1], cv=2, checkpoint=kept)
        search.fit(*ROWS)
        counts.append(len(list(kept.glob("*.fits"))))
    assert counts[0] == counts[1] == counts[2] / 2


def test_an_edit_is_tried_again(version):
    module = sys.modules[type(version()).__module__]
    surrogate = module.Mine(2)
    check_surrogate(surrogate)
    module.helping.more = lambda hinge: np.full(hinge.shape, np.nan)
    with pytest.raises(InputError, match="declares what it is not"):
        check_surrogate(surrogate)


def test_a_class_that_was_run_from_a_text_is_told_by_its_code():
    """Of what dataclasses write for it, nobody knows the module."""
    digests = []
    for margin in (1.0, 2.0):
        names = {"__name__": "page", "Surrogate": Surrogate, "dataclass": dataclass}
        text = f"""
@dataclass(frozen=True)
class Loss(Surrogate):
    name = "loss"

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef, /):
        values[first:last] = {margin}
"""
        exec(text, names)
        digests.append(code_digest(names["Loss"](3)))
    assert digests[0] != digests[1]
