"""Reading, joining, learning weights and fusing: time and memory beside ranx and ir_measures.

    python -m benchmarks fuse_speed --other PYTHON [--queries 1000] [--folder DIR]

Makes six runs of 1,000 queries x 1,000 documents (6,000,000 lines) and judgments, of which 50
queries are learned from, and runs each way in a process of its own: the package in this Python;
ranx and ir_measures in PYTHON, an environment that has them (they pin other versions of what they
share with the package). ranx does the same job by its own means: reads, min-max, tries a grid of
weights in steps of .2 for the judged queries, fuses all. Kernels are compiled before the clock
starts, in a first run on 60 queries. Seconds, by the clock and of the processor (which count on
a busy machine), and peak memory go to standard output as JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

N_RUNS, N_JUDGED, N_POOL = 6, 50, 4000
NAMES = [f"run{i}" for i in range(N_RUNS)]


def make(folder: Path, n_queries: int, depth: int = 1000) -> None:
    """Runs of one relevance and six noises; documents of a query are from a pool of its own."""
    rng = np.random.default_rng(0)
    with ExitStack() as stack:
        files = [stack.enter_context(open(folder / f"{name}.run", "w")) for name in NAMES]
        judged = stack.enter_context(open(folder / "judged.qrels", "w"))
        for query in range(n_queries):
            documents = [f"d{i}" for i in rng.choice(5 * 10**6, N_POOL, replace=False)]
            relevance = rng.normal(size=N_POOL)
            grades = np.digitize(relevance, [1.5, 2.2, 3.0])
            if query < N_JUDGED:
                for i in np.argsort(-relevance + rng.normal(size=N_POOL))[:200]:
                    judged.write(f"q{query} 0 {documents[i]} {grades[i]}\n")
            for i, file in enumerate(files):
                score = relevance + (0.5 + 0.3 * i) * rng.normal(size=N_POOL)
                best = np.argsort(-score)[:depth]
                file.writelines(
                    f"q{query} Q0 {documents[j]} {rank} {score[j]:.6f} {NAMES[i]}\n"
                    for rank, j in enumerate(best, 1)
                )


class Clock:
    """Seconds of one step after the other, by the clock and of the processor."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._start()

    def _start(self) -> None:
        self.last = time.perf_counter()
        self.last_processor = time.process_time()

    def step(self, name: str) -> None:
        self.seconds[name] = round(time.perf_counter() - self.last, 2)
        self.processor[name] = round(time.process_time() - self.last_processor, 2)
        self._start()

    def report(self) -> dict[str, object]:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "seconds": self.seconds,
            "total": round(sum(self.seconds.values()), 2),
            "processor": self.processor,
            "total_processor": round(sum(self.processor.values()), 2),
            "peak_mb": round(peak),
        }


def ours(folder: Path) -> dict[str, object]:
    """This package."""
    from structsvm_papk import PAPKRanker
    from structsvm_papk.fusion import join_lists, read_judgments, read_run, write_run

    clock = Clock()
    runs = {name: read_run(folder / f"{name}.run") for name in NAMES}
    judgments = read_judgments(folder / "judged.qrels")
    clock.step("read")
    everything = join_lists(runs)
    judged = set(judgments["query"].cat.categories)
    few = {name: run[run["query"].isin(judged)] for name, run in runs.items()}
    joined = join_lists(few, judgments)
    clock.step("join")
    ranker = PAPKRanker(10, missing="lowest", relevance_threshold=1, policy="cap")
    ranker.fit(joined[NAMES], joined["grade"], groups=joined["query"].factorize()[0])
    clock.step("learn")
    groups = everything["query"].factorize()[0]
    fused = everything.iloc[:, :2].assign(score=ranker.predict(everything[NAMES], groups))
    clock.step("fuse")
    place = fused.groupby(groups)["score"].rank(method="first", ascending=False)
    write_run(folder / "fused.run", fused[place <= 1000])
    clock.step("write")
    return clock.report()


def ranx(folder: Path) -> dict[str, object]:
    """The same by ranx: its grid has steps of .2 here, as .1 takes ten times as long."""
    from ranx import Qrels, Run, fuse, optimize_fusion

    clock = Clock()
    runs = [Run.from_file(str(folder / f"{name}.run"), kind="trec") for name in NAMES]
    qrels = Qrels.from_file(str(folder / "judged.qrels"), kind="trec")
    clock.step("read")
    few = [Run({q: dict(run.run[q]) for q in qrels.qrels}) for run in runs]
    clock.step("join")
    best = optimize_fusion(
        qrels=qrels, runs=few, norm="min-max", method="wsum", metric="ndcg@10", step=0.2,
        show_progress=False, return_optimization_report=False,
    )  # fmt: skip
    clock.step("learn")
    fused = fuse(runs=runs, norm="min-max", method="wsum", params=best)
    clock.step("fuse")
    fused.save(str(folder / "fused.ranx.run"), kind="trec")
    clock.step("write")
    return clock.report()


def ir_measures(folder: Path) -> dict[str, object]:
    """Reading alone."""
    from ir_measures import read_trec_run

    clock = Clock()
    n_rows = sum(1 for name in NAMES for _ in read_trec_run(str(folder / f"{name}.run")))
    clock.step("read")
    return clock.report() | {"rows": n_rows}


WAYS = {"ours": ours, "ranx": ranx, "ir_measures": ir_measures}


def in_process(python: str, way: str, folder: Path) -> dict[str, object]:
    """What a way reports, from a process of its own."""
    call = [python, str(Path(__file__).resolve()), "--way", way, "--folder", str(folder)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    result: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", help="a Python that has ranx and ir_measures")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(WAYS[given.way](given.folder)))
        return
    pythons = {"ours": sys.executable, "ranx": given.other, "ir_measures": given.other}
    results: dict[str, object] = {"queries": given.queries, "lines": N_RUNS * given.queries * 1000}
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        small, large = Path(name, "small"), Path(name, "large")
        for folder, n_queries in ((small, 60), (large, given.queries)):
            folder.mkdir()
            make(folder, n_queries)
        for way, python in pythons.items():
            if python is not None:
                in_process(python, way, small)  # compiles
                results[way] = in_process(python, way, large)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
