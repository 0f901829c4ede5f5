"""What the searches share: options, the loop over seeds, the progress bar, the report."""

import argparse
import json
import statistics
import sys
import time
import traceback
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table


@dataclass(frozen=True)
class Violation:
    """Something that is wrong.

    `kind` is what, `where` in which method or call, `detail` holds figures, `problem` what was
    asked; ``--seed SEED --problems 1`` shows it again.
    """

    seed: int
    kind: str
    where: str
    detail: str
    problem: str


class Report:
    """Counts of what was done, and the violations of one problem after another."""

    def __init__(self):
        self.counts, self.violations, self.n_problems = Counter(), [], 0
        self.figures = defaultdict(lambda: defaultdict(list))
        self._seed, self._words = 0, ""

    def begin(self, seed):
        self._seed, self._words = seed, ""
        self.n_problems += 1

    def describe(self, words):
        self._words = words

    def count(self, what, n=1):
        self.counts[what] += n

    def add(self, kind, where, detail):
        self.violations.append(Violation(self._seed, kind, where, detail, self._words))

    def measure(self, row, column, value):
        """A figure of which the report shows the largest and the median."""
        self.figures[row][column].append(value)

    def crash(self, where, error):
        """An exception that no caller can be expected to meet."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        self.add(type(error).__name__, where, f"{str(error)[:200]} ({place})")


def search(check, seed, problems, seconds=None, on_done=None):
    """Check the problems of the seeds ``seed, seed + 1, ..``; ``check(seed, report)`` does one."""
    report, started = Report(), time.perf_counter()
    for one in range(seed, seed + problems):
        if seconds is not None and time.perf_counter() - started > seconds:
            break
        report.begin(one)
        try:
            check(one, report)
        except Exception as error:
            report.crash("the search itself", error)
        if on_done is not None:
            on_done(report)
    return report


def main(check, script, description):
    """The command line of a search; exit status 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--problems", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--json", metavar="FILE", help="write counts and violations here")
    options = parser.parse_args()
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    started = time.perf_counter()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("problems", total=options.problems)

        def on_done(report):
            bar.update(task, advance=1, description=f"{len(report.violations)} wrong")

        report = search(check, options.seed, options.problems, options.seconds, on_done)
    _show(report, script, time.perf_counter() - started)
    if options.json:
        _write(report, options)
    return 1 if report.violations else 0


def _show(report, script, seconds):
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table("what", "how many", title=f"{report.n_problems} problems, {seconds:.0f} s")
    for what, n in sorted(report.counts.items()):
        table.add_row(what, f"{n:,}")
    console.print(table)
    if report.figures:
        columns = sorted({column for row in report.figures.values() for column in row})
        table = Table("largest (median)", *columns)
        for row, own in report.figures.items():
            table.add_row(row, *(_summary(own[column]) for column in columns))
        console.print(table)
    if not report.violations:
        console.print("nothing wrong")
        return
    table = Table("wrong", "where", "how often", "again with")
    kinds = Counter((v.kind, v.where) for v in report.violations)
    for (kind, where), n in kinds.most_common():
        seeds = [v.seed for v in report.violations if (v.kind, v.where) == (kind, where)]
        table.add_row(kind, where, str(n), f"--seed {seeds[0]} --problems 1")
    console.print(table)
    for v in report.violations:
        print(f"{v.kind} | {v.where} | {v.detail}\n    {v.problem}")
        print(f"    python tests/stress/{script} --seed {v.seed} --problems 1")


def _summary(values):
    return f"{max(values):.1e} ({statistics.median(values):.0e})" if values else ""


def _each(columns):
    return {
        name: {"answers": len(own), "largest": max(own), "median": statistics.median(own)}
        for name, own in columns.items()
    }


def _write(report, options):
    answer = {
        "seed": options.seed,
        "problems": report.n_problems,
        "counts": report.counts,
        "figures": {row: _each(own) for row, own in report.figures.items()},
        "violations": [asdict(v) for v in report.violations],
    }
    with open(options.json, "w") as file:
        json.dump(answer, file, indent=1)
        file.write("\n")
