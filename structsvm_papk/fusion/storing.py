"""What a fusion reads and writes as files: names of runs, fused lists, weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import glob
from pathlib import Path

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.roles import RETRIEVED, list_roles
from structsvm_papk.errors import InputError
from structsvm_papk.files import tables, trec
from structsvm_papk.fusion.engines import combsum, from_lowest, rrf
from structsvm_papk.fusion.entries import places
from structsvm_papk.fusion.joining import Joined

_ENDINGS = (".gz", ".run", ".txt", ".trec", ".res", ".csv", ".tsv", ".parquet", ".pq")
METHODS: dict[str, Callable[..., Array]] = {"rrf": rrf, "combsum": combsum}


def named_runs(given: Sequence[str]) -> dict[str, Path]:
    """Paths of runs by name: of ``name=path``, or of the files without what all names share.

    ``2019/dl19.bm25.run`` and ``2019/dl19.splade.run`` are bm25 and splade, so that the files of
    another year have the same names. ``2019/*.run`` is all of them, where no shell has said so.
    """
    named: list[tuple[str, Path]] = []
    for text in (text for pattern in given for text in _expanded(pattern)):
        stated, equals, file = text.partition("=")
        if not equals or Path(text).exists():
            named.append(("", Path(text)))
        elif stated and file:
            named.append((stated, Path(file)))
        else:
            raise InputError(f"run {text!r}: give a path, or name=path")
    names = iter(_different_parts([path for name, path in named if not name]))
    runs: dict[str, Path] = {}
    for name, path in named:
        name = name or next(names)
        if runs.get(name) == path:
            raise InputError(f"run {path} is given twice")
        if name in runs:
            raise InputError(
                f"two runs are called {name!r}: {runs[name]} and {path}; give names, as "
                f"{name}2={path}"
            )
        runs[name] = path
    return runs


def _expanded(pattern: str) -> list[str]:
    """The files that a pattern fits, in the order of their names; other texts as they are."""
    if "*" not in pattern or Path(pattern).exists():
        return [pattern]
    files = sorted(glob(pattern))
    if not files:
        raise InputError(f"no file is called like {pattern}")
    return files


def _different_parts(paths: Sequence[Path]) -> list[str]:
    """File names without endings, and without what all of them begin or end with, up to a point."""
    names = []  # each as its parts between points
    for path in paths:
        name = path.name
        while name.lower().endswith(_ENDINGS) and Path(name).stem:
            name = Path(name).stem
        names.append(name.split("."))
    if len(names) > 1:
        while min(map(len, names)) > 1 and len({parts[0] for parts in names}) == 1:
            names = [parts[1:] for parts in names]
        while min(map(len, names)) > 1 and len({parts[-1] for parts in names}) == 1:
            names = [parts[:-1] for parts in names]
    return [".".join(parts) for parts in names]


def list_columns(path: Path) -> tuple[str, str]:
    """Whether a file is of queries and documents, or of users and items, by its columns."""
    format = tables.format_of(path)
    if format is None or trec.form_of(path) is not None:
        return RETRIEVED
    return list_roles(tables.column_names(path, format))


def write_fused(path: Path, joined: Joined, scores: Array, top: int) -> int:
    """Write the best rows of each list, as a run or a table; returns their number.

    The last of a list has the score 0.
    """
    lists = joined.frame.iloc[:, :2].assign(score=from_lowest(scores, joined.query))
    place = places(joined.query, lists["score"].to_numpy(), joined.place)
    shown = place < top
    best = lists[shown]
    format = tables.format_of(path)
    if format is None:
        trec.write_run(
            path, best.set_axis(["query", "document", "score"], axis=1), "structsvm-papk"
        )
        return len(best)
    best = best.assign(rank=place[shown] + 1)
    order = np.lexsort((best["rank"].to_numpy(), joined.query[shown]))
    best = best.iloc[order]
    tables.write_table(path, best)
    return len(best)


def matched(runs: dict[str, Path], wanted: Sequence[str]) -> dict[str, Path]:
    """The runs that weights were learned for, in their order; refuses others."""
    absent = [name for name in wanted if name not in runs]
    more = [name for name in runs if name not in wanted]
    if absent or more:
        remedy = "name the files as these, with name=path"
        if not more:
            remedy = f"without {', '.join(absent)} another model has to be learned, with --qrels"
        raise InputError(
            f"the model is of the runs {', '.join(wanted) or '(without names)'}; given are "
            f"{', '.join(runs)}: {remedy}"
        )
    return {name: runs[name] for name in wanted}
