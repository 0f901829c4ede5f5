"""What the searches share: options, the loop over seeds, the report."""

import argparse
import statistics
import sys
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

sys.path.append(str(Path(__file__).resolve().parents[1]))  # helpers


class Violation(NamedTuple):
    """Something that is wrong: what, in which method or call, figures, and what was asked."""

    kind: str
    where: str
    detail: str
    problem: str


class Report:
    """Counts of what was done, and the violations of one problem after another."""

    def __init__(self):
        self.counts, self.violations, self.figures = Counter(), [], defaultdict(list)
        self.problem = ""

    def add(self, kind, where, detail=""):
        self.violations.append(Violation(kind, where, detail, self.problem))

    def crash(self, where, error):
        """An exception that no caller can be expected to meet."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        self.add(type(error).__name__, where, f"{str(error)[:200]} ({place})")


def search(check, seeds, seconds=None, **options):
    """Check the problems of the seeds; ``check(seed, report, **options)`` does one."""
    report, end = Report(), time.monotonic() + (seconds or 1e9)
    for seed in seeds:
        if time.monotonic() > end:
            break
        report.problem = ""
        report.counts["problems"] += 1
        already = len(report.violations)
        try:
            check(seed, report, **options)
        except Exception as error:
            report.crash("the search itself", error)
        for each in report.violations[already:]:
            print(f"{each.kind} | {each.where} | {each.detail}\n    {each.problem}")
            print(f"    again with --seed {seed} --problems 1")
    return report


def main(check, description, choices, problems=5000):
    """The command line of a search; exit status 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=problems)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--only", choices=choices)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.problems)
    seeds = track(seeds, "problems", console=Console(stderr=True))
    report = search(check, seeds, given.seconds, only=given.only)
    for what, n in sorted(report.counts.items()):
        print(f"{n:>10,} {what}")
    for what, own in sorted(report.figures.items()):
        print(
            f"{len(own):>10,} {what}: largest {max(own):.1e}, median {statistics.median(own):.0e}"
        )
    kinds = Counter(f"{each.kind}, {each.where}" for each in report.violations)
    print(*(f"{n:>10,} times wrong: {what}" for what, n in kinds.most_common()), sep="\n")
    return int(bool(kinds))
