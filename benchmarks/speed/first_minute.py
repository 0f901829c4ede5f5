"""Processor seconds of the first calls after an install, when no compiled kernel is kept yet.

    python -m benchmarks first_minute [--rounds 3] [--json benchmarks/results/first_minute.json]

Every round is a fresh process with an empty folder for numba's files; the least of the rounds
counts. `tables` makes the table.
"""

import json
import tempfile

from benchmarks.speed.harness import ROOT, output, parser, save, seconds_of_processes

TARGETS = {"import structsvm_papk": 0.4, "structsvm-papk --help": 0.5, "fit and score": 5.0}
STEPS = """
import json, time  # nothing else: what the package has to load counts
seconds = {}
start = time.process_time()
def done(step):
    global start
    seconds[step] = time.process_time() - start
    start = time.process_time()
import structsvm_papk
done("import structsvm_papk")
import numpy as np
from structsvm_papk import PAPKRanker, metrics
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 10))
groups = np.repeat(np.arange(20), 100)
y = (X[:, 0] + rng.normal(size=2000) > 1).astype(int)
ranker = PAPKRanker(k=20)
done("imports of the first fit")
ranker.fit(X, y, groups)
done("fit of PAPKRanker(k=20)")
scores = ranker.decision_function(X)
ranker.score(X, y, groups)
done("its score, pap@20")
PAPKRanker(k=20, surrogate="clipped_ramp").fit(X, y, groups)
done("then fit of ClippedRamp")
metrics.evaluate(["auc", "ndcg@10", "ap", "recall@10", "rr", "hit@10"], scores, y, groups)
done("then six more metrics")
print(json.dumps(seconds))
"""
HELP = "import sys; sys.argv[1:] = ['--help']; from structsvm_papk.cli import main; main()"


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    rounds = [first_minute() for _ in range(1 if options.small else options.rounds)]
    now = {step: min(seconds[step] for seconds in rounds) for step in rounds[0]}
    for step, seconds in now.items():
        print(f"{step:28s} {seconds:6.2f} s")
    save(options.json, {"now": now, "targets": TARGETS})


def first_minute():
    """Seconds of each step in fresh processes."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "1"}
        seconds = json.loads(output("-c", STEPS, env=env, cwd=folder))
        later = json.loads(output("-c", STEPS, env=env, cwd=folder))
        seconds["fit and score"] = fit_and_score(seconds)
        seconds["fit and score, later process"] = fit_and_score(later)
        before = seconds_of_processes()
        output("-c", HELP, env=env, cwd=folder)
        seconds["structsvm-papk --help"] = seconds_of_processes() - before
    return seconds


def fit_and_score(seconds):
    return seconds["fit of PAPKRanker(k=20)"] + seconds["its score, pap@20"]


if __name__ == "__main__":
    main()
