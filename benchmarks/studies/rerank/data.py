"""Interactions of users and items in the form of the public IR-Benchmark data, and their splits.

A folder, or a zip, holds ``train.tsv`` and ``test.tsv``: user and item in the first two columns,
whole numbers from 0, with a header line or without.
"""

import hashlib
import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.studies.rerank.published import PUBLISHED
from structsvm_papk.datasets import interaction_pairs
from structsvm_papk.errors import InputError

_FILES = ("train.tsv", "test.tsv")
_FORM = "user and item as whole numbers from 0, separated by a tab"


@dataclass(frozen=True)
class Interactions:
    """Who has used what: CSR of ones; users and items are in order of their ids."""

    train: sparse.csr_matrix
    test: sparse.csr_matrix
    digest: str
    remarks: tuple = ()
    rows: tuple = field(default=(0, 0), repr=False)

    @property
    def n_users(self):
        """Number of users."""
        return self.train.shape[0]

    @property
    def n_items(self):
        """Number of items."""
        return self.train.shape[1]

    @property
    def published(self):
        """Name of the data set, the source and what is published on it, or (None, None, {})."""
        return PUBLISHED.get((self.n_users, self.n_items, *self.rows), (None, None, {}))


def read(source):
    """Interactions of a folder or zip.

    A pair that occurs several times in a file counts once. A test pair that is also in training is
    left out, as items that a user knows are not recommended; so are users who are in one file only,
    but they still count in training. Items of the test file only stay: nobody can recommend them,
    and a recommender is measured by that too.
    """
    contents = _contents(Path(source))
    train, test = (_pairs(f"{source}: {name}", contents[name]) for name in _FILES)
    users, user = np.unique(np.concatenate([train[:, 0], test[:, 0]]), return_inverse=True)
    items, item = np.unique(np.concatenate([train[:, 1], test[:, 1]]), return_inverse=True)
    n = len(train)
    shape = users.size, items.size
    matrices = [_matrix(user[part], item[part], shape) for part in (np.s_[:n], np.s_[n:])]
    rows = len(train), len(test)
    test_only = matrices[1] - matrices[1].multiply(matrices[0])
    known = np.diff(matrices[0].indptr) > 0
    kept = sparse.diags(known.astype(np.float32)) @ test_only
    kept = sparse.csr_matrix(kept, dtype=np.float32)
    kept.eliminate_zeros()
    if not kept.nnz:
        raise InputError(f"{source}: no user of test.tsv has an item there that train.tsv lacks")
    digest = hashlib.sha256(b"\0".join(contents[name] for name in _FILES)).hexdigest()
    remarks = _remarks(rows, matrices, test_only, known)
    return Interactions(matrices[0], kept, digest, remarks, rows)


def _remarks(rows, matrices, test_only, known):
    train, test = matrices
    has_test = np.diff(test.indptr) > 0
    seen_items = np.bincount(train.indices, minlength=train.shape[1]) > 0
    counts = (
        (sum(rows) - train.nnz - test.nnz, "lines repeat a pair of their file and count once"),
        (test.nnz - test_only.nnz, "test pairs are in training too and are left out"),
        (int((has_test & ~known).sum()), "users are in test.tsv only and are left out"),
        (int((known & ~has_test).sum()), "users have no test item and are not measured"),
        (int((~seen_items).sum()), "items are in test.tsv only: no recommender can find them"),
    )
    return tuple(f"{number} {text}" for number, text in counts if number)


def _matrix(user, item, shape):
    matrix = sparse.csr_matrix((np.ones(user.size, np.float32), (user, item)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _contents(source):
    """Bytes of the two files, by name."""
    if source.is_dir():
        missing = [name for name in _FILES if not (source / name).is_file()]
        _refuse_missing(source, missing)
        return {name: (source / name).read_bytes() for name in _FILES}
    if not source.is_file() or not zipfile.is_zipfile(source):
        raise InputError(f"{source} is neither a folder nor a zip file; {_wanted()}")
    try:
        with zipfile.ZipFile(source) as archive:
            places = {Path(name).name: name for name in archive.namelist()}
            _refuse_missing(source, [name for name in _FILES if name not in places])
            return {name: archive.read(places[name]) for name in _FILES}
    except zipfile.BadZipFile as error:
        raise InputError(f"{source} is a damaged zip file: {error}") from None


def _wanted():
    return f"expected train.tsv and test.tsv with {_FORM}"


def _refuse_missing(source, missing):
    if missing:
        raise InputError(f"{source} holds no {' and no '.join(missing)}; {_wanted()}")


def _pairs(place, content):
    """Users and items, shape (n_rows, 2)."""
    first, _, rest = content.partition(b"\n")
    skip = int(not re.match(rb"\s*[-+.]?\d|[^\t]*\t\s*[-+.]?\d", first))
    if not (rest if skip else content).strip():
        raise InputError(f"{place} holds no interactions; {_wanted()}")
    try:
        text = io.StringIO(content.decode())
        pairs = np.loadtxt(text, np.int64, delimiter="\t", usecols=(0, 1), skiprows=skip, ndmin=2)
    except (ValueError, UnicodeDecodeError, OverflowError):
        raise InputError(_first_bad_line(place, content, skip)) from None
    if (pairs < 0).any():
        raise InputError(_first_bad_line(place, content, skip))
    return pairs


def _is_pair(line):
    return len(fields := line.split(b"\t")) > 1 and all(f.strip().isdigit() for f in fields[:2])


def _first_bad_line(place, content, skip):
    for number, line in enumerate(content.splitlines(), 1):
        if number > skip and line.strip() and not _is_pair(line):
            shown = line.decode(errors="replace")[:60]
            return f"{place}, line {number}: expected {_FORM}, found {shown!r}"
    return f"{place}: expected {_FORM}"


def inner_split(train, share=0.2, seed=0):
    """Interactions to fit first-stage models on, and those held back as labels for re-rankers.

    Of every user with two interactions or more, `share` of them (rounded, at least one, never all)
    are labels.
    """
    rng = np.random.default_rng(seed)
    sizes = np.diff(train.indptr)
    wanted = np.clip(np.rint(share * sizes).astype(int), np.minimum(sizes - 1, 1), sizes - 1)
    wanted = np.maximum(wanted, 0)
    owner = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((rng.random(owner.size), owner))  # a random order within users
    held = np.zeros(owner.size, dtype=bool)
    place = np.arange(owner.size) - np.repeat(train.indptr[:-1], sizes)
    held[order[place < np.repeat(wanted, sizes)]] = True
    return tuple(_matrix(owner[m], train.indices[m], train.shape) for m in (~held, held))


def write_synthetic(folder, n_users=300, n_items=200, seed=0):
    """Write ``train.tsv`` and ``test.tsv`` of `interaction_pairs` into a new or empty folder."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not an empty folder")
    pairs = interaction_pairs(n_users, n_items, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in zip(("train.tsv", "test.tsv"), pairs, strict=True):
        lines = "".join(f"{user}\t{item}\n" for user, item in part)
        (folder / name).write_text("user\titem\n" + lines)
    return folder
