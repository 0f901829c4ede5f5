"""How many files and functions of the package run in one solve, and in one fit.

    python tools/trace.py            counts
    python tools/trace.py --files    the files too, with the number of their functions

Compiled kernels are counted where they are called from Python; imports are not counted.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import structsvm_papk
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists

PACKAGE = Path(structsvm_papk.__file__).parent


def functions_of(work):
    """The code of the package that runs, once each."""
    seen = set()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen.add(frame.f_code)

    work()  # what runs once only, as imports and the compiler do, is no part of it
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def main():
    """Print a line for each piece of work."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="name the files")
    with_files = parser.parse_args().files
    lists = linear_lists(n_users=20, n_items=30, n_features=5, seed=0)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    ranker = PAPKRanker(k=3)
    pieces = {
        "a solve of Avg": lambda: CuttingPlane(1e-2).solve(
            EmpiricalRisk(make_surrogate("avg", 3), data)
        ),
        "PAPKRanker.fit": lambda: ranker.fit(lists.X, lists.y, groups=lists.groups),
    }
    for name, work in pieces.items():
        files = Counter(Path(code.co_filename) for code in functions_of(work))
        print(f"{name}: {len(files)} files, {sum(files.values())} functions")
        for file, n in sorted(files.items()) if with_files else ():
            print(f"  {file.relative_to(PACKAGE)}  {n}")


if __name__ == "__main__":
    main()
