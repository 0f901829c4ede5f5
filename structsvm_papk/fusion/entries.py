"""One run, or judgments, of any form: files, frames and dictionaries, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.roles import pair_columns
from structsvm_papk.errors import InputError
from structsvm_papk.files import trec
from structsvm_papk.files.lists import read_pairs

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Entries:
    """A run or judgments: the number that a pair of a query and a document has.

    `what` is its name in messages; `query` and `document` are codes into `queries` and
    `documents`; `used` says which columns were taken for what.
    """

    what: str
    query: Array
    queries: pd.Index
    document: Array
    documents: pd.Index
    value: Array
    used: str

    def only(self, mask: Array) -> Entries:
        """The entries of a mask, with the documents that they have."""
        document = self.document[mask]
        present = np.zeros(self.documents.size, dtype=bool)
        present[document] = True
        renumbered = np.cumsum(present) - 1
        return Entries(
            what=self.what,
            query=self.query[mask],
            queries=self.queries,
            document=renumbered[document],
            documents=self.documents[present],
            value=self.value[mask],
            used=self.used,
        )

    def first(self, n: int) -> Entries:
        """The first n documents of each query, by score, then by document id, descending."""
        in_order = validation.places_of(self.documents)
        return self.only(places(self.query, self.value, in_order[self.document]) < n)


def entries_of(given: Any, what: str, on: tuple[str, str], kind: str) -> Entries:
    """What a file, a frame or a dictionary says, checked; `kind` is the column of numbers."""
    used = None
    if isinstance(given, str | Path):
        path = Path(given)
        what = f"{what} ({path})"
        read = read_pairs(path, kind, on)
        frame = read.frame
        used = read.used
    elif isinstance(given, Mapping):
        frame = _of_dictionary(given, what, on, kind)
    elif hasattr(given, "columns"):
        frame = given
    else:
        raise TypeError(
            f"{what} must be a file, a frame or a dictionary {{{on[0]}: {{{on[1]}: {kind}}}}}, got "
            f"{type(given).__name__}"
        )
    present = [name for name in frame.columns if isinstance(name, str)]
    columns = pair_columns(present, what, on, kind)
    n_rows = len(frame)
    if not n_rows:
        raise InputError(f"{what} is empty")
    value = np.ones(n_rows)
    if columns.number is not None:
        value = _numbers(frame[columns.number], what, kind)
    query, queries = _codes(frame[columns.lists], f"{what}: {on[0]}")
    document, documents = _codes(frame[columns.members], f"{what}: {on[1]}")
    twice = validation.second_of_a_pair(query, document, documents.size)
    if twice is not None:
        raise InputError(
            f"{what}: {on[1]} {documents[document[twice]]!r} of {on[0]} "
            f"{queries[query[twice]]!r} occurs twice, again in row {twice} (counted from 0); every "
            f"{on[0]} may hold it once"
        )
    return Entries(
        what=what,
        query=query,
        queries=queries,
        document=document,
        documents=documents,
        value=value,
        used=used or columns.used,
    )


def _of_dictionary(given: Mapping[Any, Any], what: str, on: tuple[str, str], kind: str) -> Any:
    import pandas as pd

    for key, members in given.items():
        if not isinstance(members, Mapping):
            raise InputError(
                f"{what}: of {on[0]} {key!r} a dictionary {{{on[1]}: {kind}}} is needed, not "
                f"{type(members).__name__}"
            )
    sizes = [len(members) for members in given.values()]
    queries = pd.Series(list(given), dtype=None if given else object)
    documents = [document for members in given.values() for document in members]
    values = [value for members in given.values() for value in members.values()]
    return pd.DataFrame(
        {
            on[0]: queries.repeat(sizes).to_numpy(),
            on[1]: pd.Series(documents, dtype=object),
            kind: values,
        }
    )


def _numbers(column: Any, what: str, kind: str) -> Array:
    values = validation.as_array(column, f"{what}: column {kind!r}")
    values = validation.as_numbers(values, f"{what}: column {kind!r}").astype(np.float64)
    bad = ~(np.abs(values) <= trec.LARGEST_SCORE)  # NaN, too
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{what}: the {kind} in row {row} is {values[row]} ({np.count_nonzero(bad)} such "
            f"rows); it must be {trec.RUN.wanted}: leave out what was not retrieved"
        )
    return values


def _codes(column: Any, what: str) -> tuple[Array, Any]:
    """Code of each row, and the ids in the order of their first row."""
    import pandas as pd

    if not isinstance(column, pd.Series):
        column = pd.Series(validation.as_array(column, what))
    try:
        codes, ids = column.factorize()
    except TypeError as error:  # of lists and dictionaries
        raise InputError(f"{what} must be texts or whole numbers: {error}") from None
    if (codes < 0).any():
        raise InputError(f"{what} is missing in row {int(np.argmax(codes < 0))}")
    if isinstance(ids, pd.CategoricalIndex):
        ids = ids.categories[ids.codes]
    if ids.dtype == object:
        validation.check_ids(ids.to_numpy(), ids.size, what)
    elif ids.dtype.kind == "f":
        ids = pd.Index(validation.check_ids(ids.to_numpy(), ids.size, what))
    return codes, ids


def places(query: Array, score: Array, document: Array) -> Array:
    """Place of each row in its query's list, from 0: by score, then by document, descending.

    Scores are compared in single precision, as trec_eval does.
    """
    order = np.lexsort((-document, -validation.single(score), query))
    sizes = np.bincount(query)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size) - starts[query[order]]
    return place
