"""Reading, joining, learning weights and fusing: time and memory beside ranx.

    python -m benchmarks fuse_speed --other PYTHON [--queries 1000] [--folder DIR]
        [--json benchmarks/results/fuse_speed.json]

Makes six runs of 1,000 queries x 1,000 documents (6,000,000 lines) and judgments, of which 50
queries are learned from, and runs each way in a process of its own: the package in this Python;
ranx in PYTHON, an environment that has it (it pins other versions of what it shares with the
package). ranx does the same job by its own means: reads, min-max, tries a grid of weights in steps
of .2 for the judged queries, fuses all. Kernels are compiled before the clock starts, in a first
run on 60 queries. Seconds, by the clock and of the processor (which count on a busy machine), and
peak memory are printed as JSON.
"""

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.speed.harness import Steps, output, parsed, parser, peak_mb, save

N_RUNS, N_JUDGED, N_POOL = 6, 50, 4000
NAMES = [f"run{i}" for i in range(N_RUNS)]


def make(folder, n_queries, depth=1000):
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


def report(steps):
    """Seconds of the steps, and the peak of this process."""
    return {
        "seconds": rounded(steps.seconds),
        "total": round(sum(steps.seconds.values()), 2),
        "processor": rounded(steps.processor),
        "total_processor": round(sum(steps.processor.values()), 2),
        "peak_mb": round(peak_mb()),
    }


def rounded(seconds):
    return {name: round(value, 2) for name, value in seconds.items()}


def ours(folder):
    """This package."""
    from structsvm_papk import PAPKRanker
    from structsvm_papk.files.trec import JUDGMENTS, RUN, read_lines
    from structsvm_papk.fusion import join_lists, write_run

    steps = Steps()
    runs = {name: read_lines(folder / f"{name}.run", RUN) for name in NAMES}
    judgments = read_lines(folder / "judged.qrels", JUDGMENTS)
    steps.done("read")
    everything = join_lists(runs)
    judged = set(judgments["query"].cat.categories)
    few = {name: run[run["query"].isin(judged)] for name, run in runs.items()}
    joined = join_lists(few, judgments)
    steps.done("join")
    ranker = PAPKRanker(10, missing="lowest", relevance_threshold=1, policy="cap")
    ranker.fit(joined[NAMES], joined["grade"], groups=joined["query"].factorize()[0])
    steps.done("learn")
    groups = everything["query"].factorize()[0]
    fused = everything.iloc[:, :2].assign(score=ranker.predict(everything[NAMES], groups))
    steps.done("fuse")
    place = fused.groupby(groups)["score"].rank(method="first", ascending=False)
    write_run(folder / "fused.run", fused[place <= 1000])
    steps.done("write")
    return report(steps)


def ranx(folder):
    """The same by ranx: its grid has steps of .2 here, as .1 takes ten times as long."""
    from ranx import Qrels, Run, fuse, optimize_fusion

    steps = Steps()
    runs = [Run.from_file(str(folder / f"{name}.run"), kind="trec") for name in NAMES]
    qrels = Qrels.from_file(str(folder / "judged.qrels"), kind="trec")
    steps.done("read")
    few = [Run({q: dict(run.run[q]) for q in qrels.qrels}) for run in runs]
    steps.done("join")
    best = optimize_fusion(
        qrels=qrels, runs=few, norm="min-max", method="wsum", metric="ndcg@10", step=0.2,
        show_progress=False, return_optimization_report=False,
    )  # fmt: skip
    steps.done("learn")
    fused = fuse(runs=runs, norm="min-max", method="wsum", params=best)
    steps.done("fuse")
    fused.save(str(folder / "fused.ranx.run"), kind="trec")
    steps.done("write")
    return report(steps)


WAYS = {"ours": ours, "ranx": ranx}


def in_process(python, way, folder):
    """What a way reports, from a process of its own."""
    printed = output(
        "-m", "benchmarks", "fuse_speed", "--way", way, "--folder", folder, python=python
    )
    return json.loads(printed.splitlines()[-1])


def main():
    options = parser(__doc__)
    options.add_argument("--other", help="a Python that has ranx")
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--folder", type=Path)
    options.add_argument("--way", choices=WAYS, help="this way alone, on what is in the folder")
    options = parsed(options, queries=60)
    if options.way:
        print(json.dumps(WAYS[options.way](options.folder)))
        return
    pythons = {"ours": sys.executable}
    if options.other:
        pythons["ranx"] = options.other
    results = {"queries": options.queries, "lines": N_RUNS * options.queries * 1000}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        sizes = {Path(name, "small"): 60, Path(name, "large"): options.queries}
        for folder, n_queries in sizes.items():
            folder.mkdir()
            make(folder, n_queries)
        for way, python in pythons.items():
            for folder in sizes:  # the first compiles
                results[way] = in_process(python, way, folder)
    print(json.dumps(results, indent=2))
    save(options.json, results)


if __name__ == "__main__":
    main()
