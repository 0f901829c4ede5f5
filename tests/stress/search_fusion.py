"""Fusion: damaged runs and judgments, and the numbers of `cross_validate` against pytrec_eval.

    python tests/stress/search_fusion.py --problems 200

`files` reads 200 mutated files in each problem: each is parsed or refused with `InputError`.
`numbers` compares each run alone and RRF with trec_eval, and RRF with a definition by loops.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from fuzz_readers import mutated
from searching import main

from structsvm_papk.errors import InputError
from structsvm_papk.files.trec import read_judgments, read_run
from structsvm_papk.fusion import cross_validate, join_lists, rrf

_RUN = b"q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\nq2 Q0 c 1 3 t\nq2 Q0 a 2 -1e-3 t\n"
_JUDGED = b"q1 0 b 1\nq1 0 e 1\nq2 0 c 2\nq2 0 a 0\n"


def check(seed, report, only=None, n_files=200):
    kind = only or ("files", "numbers")[seed % 2]
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "files":
            _files(rng, report, n_files)
        else:
            _numbers(rng, report)


def _files(rng, report, n_files):
    with tempfile.TemporaryDirectory() as folder:
        run, judged = Path(folder) / "r.run", Path(folder) / "j.qrels"
        calls = {
            "read_run": lambda: read_run(run), "read_judgments": lambda: read_judgments(judged),
            "join_lists": lambda: join_lists({"x": run, "y": {"q1": {"a": 1.0}}}, judged),
        }  # fmt: skip
        for _ in range(n_files):
            run.write_bytes(mutated(rng, _RUN, [_RUN, _JUDGED]))
            judged.write_bytes(mutated(rng, _JUDGED, [_RUN, _JUDGED]))
            for name, call in calls.items():
                try:
                    call()
                    report.counts[f"{name}: parsed"] += 1
                except InputError:
                    report.counts[f"{name}: refused"] += 1
                except Exception as error:
                    report.problem = f"{run.read_bytes()!r} {judged.read_bytes()!r}"
                    report.crash(name, error)


def _numbers(rng, report):
    k = int(rng.choice([3, 5, 10]))
    runs, judged = _collection(rng)
    try:
        ours = {each["name"]: each["mean"] for each in _rankings(runs, judged, k)}
    except InputError as error:
        report.counts["refused"] += 1
        report.problem = str(error)
        return
    retrieved = set().union(*runs.values())
    judged = {query: inner for query, inner in judged.items() if query in retrieved}
    joined = join_lists(runs, judged)
    fused = {}
    rows = zip(joined["query"], joined["document"], np.asarray(rrf(joined)), strict=True)
    for query, document, value in rows:
        fused.setdefault(query, {})[document] = float(value)
    for query, inner in _rrf_by_hand(runs, judged).items():
        if any(abs(fused[query][document] - value) > 1e-12 for document, value in inner.items()):
            report.add("another RRF", "rrf", query)
    for name, run in {**runs, "RRF": fused}.items():
        report.counts["means of nDCG"] += 1
        wanted = _by_trec_eval(run, judged, k)
        if abs(ours[name] - wanted) > 1e-9:
            report.add("another number", name, f"{ours[name]}, trec_eval {wanted}")


def _rankings(runs, judged, k):
    return cross_validate(runs, judged, k=k).as_dict()["rankings"]


def _collection(rng):
    n_queries, n_documents = int(rng.integers(12, 25)), int(rng.integers(15, 40))
    truth, judged = rng.normal(size=(n_queries, n_documents)), {}
    runs = {name: {} for name in "abc"[: rng.integers(1, 4)]}
    for q, quality in enumerate(truth):
        grades = (quality > 0.6).astype(int) + (quality > 1.4)
        some = rng.permutation(n_documents)[: rng.integers(5, n_documents)]
        judged[f"q{q}"] = {f"d{i}": int(grades[i]) for i in some}
        if rng.random() < 0.5:
            judged[f"q{q}"]["never retrieved"] = 2
        for run in runs.values():
            scores = quality + rng.normal(size=n_documents) * rng.uniform(0.3, 2)
            scores = scores.round(1) if rng.random() < 0.5 else scores * 1e6
            best = np.argsort(-scores)[: rng.integers(3, n_documents)]
            if rng.random() < 0.9:
                run[f"q{q}"] = {f"d{i}": float(scores[i]) for i in best}
    return runs, judged


def _by_trec_eval(run, judged, k):
    import pytrec_eval

    found = pytrec_eval.RelevanceEvaluator(judged, {f"ndcg_cut.{k}"}).evaluate(run)
    return np.mean([found.get(query, {}).get(f"ndcg_cut_{k}", 0.0) for query in judged])


def _rrf_by_hand(runs, judged):
    sums = {}
    for run in runs.values():
        for query in run.keys() & judged.keys():
            scores, own = run[query], sums.setdefault(query, {})
            ordered = sorted(
                scores, key=lambda d: (np.float32(scores[d]), d.encode()), reverse=True
            )
            for place, document in enumerate(ordered, start=1):
                own[document] = own.get(document, 0.0) + 1 / (60 + place)
    return sums


if __name__ == "__main__":
    sys.exit(main(check, __doc__, ["files", "numbers"], 200))
