"""Processor seconds of the first calls after an install, when no compiled kernel is kept yet.

    python -m benchmarks first_minute [--rounds 3]

Every round is a fresh process with an empty folder for numba's files; the least of the rounds
counts. Writes results/first_minute.json, from which tables.py makes the table.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from processes import output

HERE = Path(__file__).resolve().parent
TARGETS = {"import structsvm_papk": 0.4, "structsvm-papk --help": 0.5, "fit and score": 5.0}
STEPS = """
import json, time
seconds, start = {}, time.process_time()
def step(name):
    global start
    seconds[name] = time.process_time() - start
    start = time.process_time()
import structsvm_papk
step("import structsvm_papk")
import numpy as np
from structsvm_papk import PAPKRanker, metrics
rng = np.random.default_rng(0)
X, groups = rng.normal(size=(2000, 10)), np.repeat(np.arange(20), 100)
y = (X[:, 0] + rng.normal(size=2000) > 1).astype(int)
ranker = PAPKRanker(k=20)
step("imports of the first fit")
ranker.fit(X, y, groups)
step("fit of PAPKRanker(k=20)")
scores = ranker.decision_function(X)
ranker.score(X, y, groups)
step("its score, pap@20")
PAPKRanker(k=20, surrogate="clipped_ramp").fit(X, y, groups)
step("then fit of ClippedRamp")
metrics.evaluate(["auc", "ndcg@10", "ap", "recall@10", "rr", "hit@10"], scores, y, groups)
step("then six more metrics")
seconds["fit and score"] = seconds["fit of PAPKRanker(k=20)"] + seconds["its score, pap@20"]
print(json.dumps(seconds))
"""
HELP = "import sys; sys.argv[1:] = ['--help']; from structsvm_papk.cli import main; main()"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = [first_minute() for _ in range(parser.parse_args().rounds)]
    now = {step: min(row[step] for row in rounds) for step in rounds[0]}
    for step, seconds in now.items():
        print(f"{step:28s} {seconds:6.2f} s")
    path = HERE / "results" / "first_minute.json"
    path.write_text(json.dumps({"now": now, "targets": TARGETS}, indent=1) + "\n")


def first_minute():
    """Seconds of each step in fresh processes."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(HERE.parent)}
        env["NUMBA_NUM_THREADS"] = "1"
        seconds = json.loads(output("-c", STEPS, env=env, cwd=folder))
        later = json.loads(output("-c", STEPS, env=env, cwd=folder))
        seconds["fit and score, later process"] = later["fit and score"]
        before = used_by_children()
        output("-c", HELP, env=env, cwd=folder)
        seconds["structsvm-papk --help"] = used_by_children() - before
    return seconds


def used_by_children():
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    main()
