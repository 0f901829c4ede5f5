"""The lists of one query, fused as a service has them: dictionaries, without a join."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.validation import single
from structsvm_papk.errors import InputError, as_floats, check_type
from structsvm_papk.files.model import Model
from structsvm_papk.fusion.requests import EngineWeights


@dataclass(frozen=True)
class Fusing:
    """What weights of an engine and a model of runs both are.

    Attributes
    ----------
    names : tuple of str
        The runs, in the order of the columns.
    window : int, optional
        Documents of each list that count; None: all.
    fused : function
        ``fused(scores, query, document)``, the score of each row of a column for each run, NaN
        where it has no document.
    """

    names: tuple[str, ...]
    window: int | None
    fused: Callable[[Array, Array, Array], Array]

    @classmethod
    def of(cls, weights: EngineWeights | Model) -> Fusing:
        """Of either."""
        check_type("weights", weights, EngineWeights | Model, "weights of an engine, or a model")
        if isinstance(weights, EngineWeights):
            return cls(tuple(weights.weights), weights.window, weights.of_matrix)

        def predicted(scores: Array, query: Array, document: Array) -> Array:
            return weights.predict(scores, query)

        return cls(weights.feature_names or (), None, predicted)


def fuse(
    weights: EngineWeights | Model, lists: Mapping[str, Mapping[Any, float]]
) -> dict[Any, float]:
    """Fuse the lists of one query.

    Parameters
    ----------
    weights : EngineWeights or Model
        As `load_weights` and `load_model` read them, or ``report.engine_weights`` and
        ``report.ranker.to_model()``.
    lists : dict of str to dict
        By run, the scores of its documents; a run that is left out retrieved nothing. An engine
        joins the best of each, as many as the window of its weights says.

    Returns
    -------
    dict
        The fused score of each document, the best first; of equal scores the id that is larger as
        text is first.

    Raises
    ------
    InputError
        A run that the weights do not know; a score that is not finite; ids of documents that are
        numbers and texts.

    Examples
    --------
    >>> from structsvm_papk import fusion
    >>> from structsvm_papk.fusion.requests import EngineWeights
    >>> weights = EngineWeights("langchain", {"keywords": 0.4, "dense": 0.6}, window=100)
    >>> fused = fusion.fuse(weights, {"keywords": {"a": 7.1, "b": 3.0}, "dense": {"b": 0.8}})
    >>> list(fused)
    ['b', 'a']
    """
    fusing = Fusing.of(weights)
    check_type("lists", lists, Mapping, "a dict {run: {document: score}}")
    names = fusing.names
    for name, scores_of_run in lists.items():
        check_type(f"lists[{name!r}]", scores_of_run, Mapping, "a dict {document: score}")
    unknown = [name for name in lists if name not in names]
    if unknown:
        raise InputError(f"no weight is for run {unknown[0]!r}: they are of {', '.join(names)}")
    ids = {each for scores in lists.values() for each in scores}
    if len({validation.family(type(each)) for each in ids}) > 1:
        raise InputError("ids of documents are numbers and texts: give one kind")
    documents = sorted(ids, key=str, reverse=True)
    scores = _matrix(documents, names, lists)
    if fusing.window is not None:
        scores = _within(scores, fusing.window)
        joined = np.flatnonzero(~np.isnan(scores).all(axis=1))
        documents = [documents[row] for row in joined]
        scores = scores[joined]
    if not documents:
        return {}
    query = np.zeros(len(documents), dtype=np.int64)
    fused = fusing.fused(scores, query, -np.arange(len(documents)))
    order = np.argsort(-fused, kind="stable")
    return {documents[place]: float(fused[place]) for place in order}


def _within(scores: Array, window: int) -> Array:
    """The first `window` of each column, NaN behind them; ties are in the order of the rows."""
    order = np.argsort(-single(scores), axis=0, kind="stable")  # NaN behind all numbers
    place = np.argsort(order, axis=0)
    return np.where(place < window, scores, np.nan)


def _matrix(
    documents: Sequence[Hashable], names: Sequence[str], lists: Mapping[str, Mapping[Any, float]]
) -> Array:
    """A row for each document and a column for each run, NaN where it did not retrieve it."""
    row = {document: number for number, document in enumerate(documents)}
    matrix = np.full((len(documents), len(names)), np.nan)
    for column, name in enumerate(names):
        of_run = lists.get(name, {})
        values = as_floats(f"scores of run {name!r}", list(of_run.values()))
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InputError(f"run {name!r} has a score that is not a finite number")
        matrix[[row[document] for document in of_run], column] = values
    return matrix
