"""Runs and judgments of real retrievers that come with the package; see `trec_dl/NOTICE`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Collection:
    """What several retrievers found for the same queries, and what assessors said of it.

    Attributes
    ----------
    runs : dict of str to DataFrame
        A run by the name of its retriever: columns query, document (both text) and score; the best
        document of a query first.
    judgments : DataFrame
        Columns query, document (both text) and grade, 0 to 3; what is not there was not judged.
    """

    runs: dict[str, pd.DataFrame]
    judgments: pd.DataFrame

    @property
    def n_queries(self) -> int:
        """Number of judged queries."""
        return int(self.judgments["query"].nunique())

    def __repr__(self) -> str:
        return f"Collection of {self.n_queries} judged queries, runs {', '.join(self.runs)}"


@dataclass(frozen=True)
class RetrievalRuns:
    """Two years of one task: `train` to choose weights on, `test` to see what they are worth."""

    train: Collection
    test: Collection


def retrieval_runs() -> RetrievalRuns:
    """Runs of six retrievers on the TREC Deep Learning tracks 2019 (train) and 2020 (test).

    The 100 best passages of BM25, BM25 with RM3, TAS-B, ada-002, RepLLaMA and SPLADE++ for 43
    judged queries of 2019 and 54 of 2020, and NIST's judgments. The runs are those of
    castorini/rank_llm (Apache License 2.0); a notice beside the data says more. Read from the
    installed package, without a network.

    Examples
    --------
    >>> from structsvm_papk.datasets import retrieval_runs
    >>> sample = retrieval_runs()
    >>> sample.train
    Collection of 43 judged queries, runs bm25, bm25_rm3, tasb, ada2, repllama, splade
    >>> sample.train.runs["bm25"].head(2)
         query document    score
    0  1037798  3641634  10.6328
    1  1037798  8760867  10.4311
    """
    return RetrievalRuns(train=_collection("train"), test=_collection("test"))


def _collection(name: str) -> Collection:
    """A table with a row for each query and document and a column for each run, as its parts."""
    import pandas as pd

    with as_file(files("structsvm_papk.datasets") / "trec_dl" / f"{name}.csv.xz") as path:
        table = pd.read_csv(path, dtype={"query": str, "document": str})
    judged = table["grade"].notna()
    judgments = table.loc[judged, ["query", "document", "grade"]].astype({"grade": int})
    runs = {run: _run(table, run) for run in table.columns.drop(["query", "document", "grade"])}
    return Collection(runs=runs, judgments=judgments.reset_index(drop=True))


def _run(table: pd.DataFrame, name: str) -> pd.DataFrame:
    run = table.loc[table[name].notna(), ["query", "document", name]]
    run = run.rename(columns={name: "score"})
    order = {"by": ["query", "score", "document"], "ascending": [True, False, False]}
    return run.sort_values(**order, ignore_index=True)
