"""The tables of docs/rerank.md: the study ``rerank`` on folders of interactions, with its memory.

    python benchmarks/rerank.py [NAME=FOLDER ..] [--more NAME "--test-users 8000"]

Each NAME is measured by the command in a process of its own and kept in results/rerank.json; then
the tables between the markers of the page are written. Without arguments the page alone is.
"""

import argparse
import json
import resource
import subprocess
import sys
from importlib.metadata import version
from textwrap import wrap

from tables import PAGE, RESULTS, fill, table

FILE = RESULTS / "rerank.json"
OURS = "PAPKRankerCV"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--more", nargs=2, action="append", default=[], metavar=("NAME", "OPTIONS"))
    options = parser.parse_args()
    more = dict(options.more)
    for name, _, folder in (text.partition("=") for text in options.folders):
        found = measured(name, folder, ["--train-users", "2000", *more.get(name, "").split()])
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        FILE.write_text(json.dumps(kept | {name: found}, indent=1) + "\n")
    names = json.loads(FILE.read_text())
    fill(PAGE.with_name("rerank.md"), {name: ("rerank.json", page_of(name)) for name in names})


def measured(name, folder, options):
    """The answer of the command, with what it used."""
    command = [sys.executable, "-m", "benchmarks.studies", "rerank"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, folder, *options, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer = json.loads(done.stdout)
    answer.pop("run")  # folders of this machine
    return (
        answer
        | {
            "peak_memory_gb": after.ru_maxrss / 1e6,  # of the largest run so far
            "cpu_seconds": used,
            "command": " ".join(["python", *command[1:], name, *options]),
            "versions": {name: version(name) for name in ("numpy", "scipy", "numba", "lightgbm")},
        }
    )


def page_of(name):
    """What writes the part of the page on one data set."""

    def write(found):
        run = found[name]
        everyone = run["n_test_users"] == run["n_users"] or run["test_users"] is None
        users = f"{'all' if everyone else 'a random'} {run['n_test_users']:,}"
        text = (
            f"{run['n_users']:,} users, {run['n_items']:,} items, {run['n_train']:,} interactions "
            f"to learn from, {run['n_test']:,} to test with. Re-rankers learn from "
            f"{run['n_train_users']:,} users; everything is measured on {users}. The "
            f"{run['candidates']} candidates hold {run['candidate_recall']:.0%} of the test items. "
            f"The whole run took {run['cpu_seconds']:.0f} s of one processor and "
            f"{run['peak_memory_gb']:.2f} GB."
        )
        yield from wrap(text, 96)
        yield from ("", "```sh", run["command"], "```", "")
        k = run["k"]
        head = ("method", f"NDCG@{k}", f"recall@{k}", f"pAp@{k}",
                f"`{OURS}` ahead in NDCG by (95%)", "s")  # fmt: skip
        rows = sorted(run["rows"] + run["published"], key=lambda row: -row["ndcg"])
        yield from table(head, [_cells(row) for row in rows])

    return write


def _cells(row):
    name, numbers = row["name"], [f"{row['ndcg']:.4f}", f"{row['recall']:.4f}"]
    if "kind" not in row:
        return [f"*{name}* (published)", *numbers, "–", "–", "–"]
    own = f"**`{name}`**" if name.startswith("PAPK") else name
    ahead = "–"
    if row["lower"] is not None:
        ahead = f"{row['ours_ahead']:+.4f} ({row['lower']:+.4f} to {row['upper']:+.4f})"
    return [own, *numbers, f"{row['pap']:.4f}", ahead, f"{row['seconds']:.0f}"]


if __name__ == "__main__":
    main()
