"""One run, or judgments, of any form: files, frames and dictionaries, checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.roles import pair_columns
from structsvm_papk.errors import InputError, check_choice, check_type
from structsvm_papk.files import trec
from structsvm_papk.files.trec import (
    GRADE,
    SCORE,
    checked_label_gain,
    gains_of_labels,
    read_pairs,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class InputRules:
    """How runs of some names, and judgments, are taken; see `join_lists`."""

    names: Collection[str]
    lower_is_better: Collection[str] = ()
    duplicates: str = "refuse"
    label_gain: Mapping[str, float] | None = None
    ignore_identical: bool = False

    def __post_init__(self) -> None:
        given = self.lower_is_better
        check_type("lower_is_better", given, list | tuple | set | frozenset, "run names")
        unknown = [name for name in given if name not in self.names]
        if unknown:
            raise InputError(
                f"lower_is_better names {unknown[0]!r}; the runs are {', '.join(self.names)}"
            )
        check_choice("duplicates", self.duplicates, ("refuse", "best"))
        check_type("ignore_identical", self.ignore_identical, bool, "True or False")
        object.__setattr__(self, "label_gain", checked_label_gain(self.label_gain))


@dataclass(frozen=True)
class Entries:
    """A run or judgments: the number that a pair of a query and a document has.

    `what` is its name in messages; `query` and `document` are codes into `queries` and
    `documents`; `used` says which columns were taken for what. `is_rank`: values are minus the
    ranks of a run without scores. `n_identical` documents have the id of their query.
    """

    what: str
    query: Array
    queries: pd.Index
    document: Array
    documents: pd.Index
    value: Array
    used: str
    is_rank: bool = False
    n_identical: int = 0

    def only(self, mask: Array) -> Entries:
        """The entries of a mask, with the documents that they have."""
        document = self.document[mask]
        present = np.zeros(self.documents.size, dtype=bool)
        present[document] = True
        renumbered = np.cumsum(present) - 1
        return replace(
            self,
            query=self.query[mask],
            document=renumbered[document],
            documents=self.documents[present],
            value=self.value[mask],
        )

    def best(self) -> Entries:
        """Of each document of a query the entry with the highest value."""
        order = np.lexsort((-self.value, self.document, self.query))
        pair = self.query[order] * np.int64(self.documents.size) + self.document[order]
        mask = np.zeros(order.size, dtype=bool)
        mask[order[np.diff(pair, prepend=-1) != 0]] = True
        return self.only(mask)

    @property
    def identical(self) -> Array:
        """Mask of documents with the id of their query."""
        queries = self.queries.astype(str).to_numpy()[self.query]
        documents = self.documents.astype(str).to_numpy()[self.document]
        mask: Array = queries == documents
        return mask

    def first(self, n: int) -> Entries:
        """The first n documents of each query, by score, then by document id, descending."""
        in_order = validation.places_of(self.documents)
        return self.only(places(self.query, self.value, in_order[self.document]) < n)


def run_of(given: Any, name: str, on: tuple[str, str], rules: InputRules) -> Entries:
    """A run, checked."""
    made = entries_of(given, f"run {name!r}", on, SCORE, rules)
    if name in rules.lower_is_better and not made.is_rank:
        made = replace(made, value=-made.value)
    if rules.duplicates == "best":
        made = made.best()
    identical = made.identical
    if rules.ignore_identical and identical.any():
        made = made.only(~identical)
    return replace(made, n_identical=int(identical.sum()))


def entries_of(given: Any, what: str, on: tuple[str, str], kind: str, rules: InputRules) -> Entries:
    """What a file, a frame or a dictionary says, checked; `kind` is the column of numbers."""
    used = None
    is_rank = False
    repeated = kind == SCORE and rules.duplicates == "best"
    if isinstance(given, str | Path):
        path = Path(given)
        what = f"{what} ({path})"
        read = read_pairs(path, kind, on, label_gain=rules.label_gain, repeated=repeated)
        frame = read.frame
        used = read.used
        is_rank = read.is_rank
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
        numbers = frame[columns.number]
        if kind == GRADE and rules.label_gain is not None and used is None:
            numbers = gains_of_labels(numbers, rules.label_gain, what)
        value = _numbers(numbers, what, kind)
        if columns.is_rank:
            value = -value
    query, queries = _codes(frame[columns.lists], f"{what}: {on[0]}")
    document, documents = _codes(frame[columns.members], f"{what}: {on[1]}")
    twice = validation.second_of_a_pair(query, document, documents.size)
    if twice is not None and not repeated:
        raise InputError(
            f"{what}: {on[1]} {documents[document[twice]]!r} of {on[0]} "
            f"{queries[query[twice]]!r} occurs twice, again in row {twice} (counted from 0); every "
            f"{on[0]} may hold it once (or take the best: duplicates='best', --duplicates best)"
        )
    return Entries(
        what=what,
        query=query,
        queries=queries,
        document=document,
        documents=documents,
        value=value,
        used=used or columns.used,
        is_rank=is_rank or columns.is_rank,
    )


def _of_dictionary(given: Mapping[Any, Any], what: str, on: tuple[str, str], kind: str) -> Any:
    import pandas as pd

    for key, members in given.items():
        what_is_there = f"what {what} has of {on[0]} {key!r}"
        check_type(what_is_there, members, Mapping, f"a dictionary {{{on[1]}: {kind}}}")
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

    if not hasattr(column, "factorize"):
        column = pd.Series(validation.as_array(column, what))
    try:
        codes, ids = column.factorize()
    except TypeError as error:  # of lists and dictionaries
        raise InputError(f"{what} must be texts or whole numbers: {error}") from None
    if (codes < 0).any():
        raise InputError(f"{what} is missing in row {int(np.argmax(codes < 0))}")
    if hasattr(ids, "categories"):
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
    return validation.places_in_lists(query, -validation.single(score), -document)
