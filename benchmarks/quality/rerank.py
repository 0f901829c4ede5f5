"""The tables of results/rerank.md, from what the study ``rerank`` gives.

    python -m benchmarks studies rerank FOLDER --results RUN --json > ANSWER
    python -m benchmarks rerank [NAME=ANSWER ..]

Answers are kept in results/rerank.json; then the tables between the markers of the page are
written. Without arguments the page alone is.
"""

import argparse
import json
from pathlib import Path

from benchmarks.common.markdown import RESULTS, fill, table

FILE = RESULTS / "rerank.json"
KINDS = ("re-ranker", "recommender")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("answers", nargs="*", metavar="NAME=ANSWER")
    kept = json.loads(FILE.read_text())
    for text in options.parse_args().answers:
        name, _, file = text.partition("=")
        kept[name] = json.loads(Path(file).read_text())
        kept[name].pop("run")  # folders of this machine
    FILE.write_text(json.dumps(kept, indent=1) + "\n")
    fill(RESULTS / "rerank.md", {name: ("rerank.json", page_of(name)) for name in kept})


def page_of(name):
    """What writes the part of the page on one data set."""

    def write(kept):
        run = kept[name]
        k = run["k"]
        head = ("method", f"NDCG@{k}", f"`{_first(run)}` ahead by, 95%", "s")
        rows = sorted(_shown(run), key=lambda row: -row["ndcg"])
        yield from table(head, [_cells(row) for row in rows])

    return write


def _first(run):
    """The re-ranker that the others are compared with."""
    return next(r["name"] for r in run["rows"] if r["kind"] == "re-ranker" and r["lower"] is None)


def _shown(run):
    """All re-rankers, the best recommender, and the best published value."""

    def best(rows):
        return sorted(rows, key=lambda row: -row["ndcg"])[:1]

    kinds = {kind: [row for row in run["rows"] if row["kind"] == kind] for kind in KINDS}
    return kinds["re-ranker"] + best(kinds["recommender"]) + best(run["published"])


def _cells(row):
    name = row["name"]
    ndcg = f"{row['ndcg']:.4f}"
    if "kind" not in row:
        return [f"*{name}* (published)", ndcg, "–", "–"]
    own = f"**`{name}`**" if name.startswith("PAPK") else name
    ahead = "–"
    if row["lower"] is not None:
        ahead = f"{row['lower']:+.4f} to {row['upper']:+.4f}"
    return [own, ndcg, ahead, f"{row['seconds']:.0f}"]


if __name__ == "__main__":
    main()
