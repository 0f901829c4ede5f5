"""The table of targets: every number of docs/benchmarks.md, as ratios measured in one run.

    python -m benchmarks targets [--only M T L H path] [--repeats 3] [--json FILE]

One thread, processor seconds. "evaluations" are seconds divided by the seconds of one evaluation of
value and subgradient of the same risk; "QP" is the share of the restricted problems in the solve.
The textbook 1-slack method is given at most `--limit` seconds, and at most 30 times our time.
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import process_time as clock

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent / "solvers_benchopt"))

from benchmark_utils.measuring import measure
from benchmark_utils.tasks import TASKS, trivial
from processes import answer

from structsvm_papk import CuttingPlane, EmpiricalRisk, alpha_path, make_surrogate

CONVEX = ("avg", "max", "ts", "pauc")
EXCESS = 4e-7  # F - F* at which dlib is compared
ENOUGH = 30  # times our time: a slower competitor is stopped there
LIBRARIES = ("numpy", "numba", "scipy", "cvxpy", "piqp", "clarabel", "dlib")


def main():
    options = parsed()
    report = {"machine": machine(), "load_before": os.getloadavg()[0]}
    for name in options.only:
        warm_up()
        start = clock()
        report[name] = SECTIONS[name](options)
        print(f"  [{name}: {clock() - start:.0f} s]", flush=True)
    report["load_after"] = os.getloadavg()[0]
    if options.json:
        merged = json.loads(options.json.read_text()) if options.json.exists() else {}
        options.json.write_text(json.dumps(merged | report, indent=1) + "\n")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=list(SECTIONS))
    parser.add_argument("--repeats", type=int, default=3, help="the fastest of so many runs counts")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one solve")
    parser.add_argument("--json", type=Path, help="merge the numbers into this file")
    return parser.parse_args()


def machine():
    found = {"python": platform.python_version(), "processor": processor()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def warm_up():
    """Load compiled code and libraries, so that no run pays for it."""
    for task, surrogate, method in product("SP", CONVEX, ("bundle", "one_slack")):
        CuttingPlane(1e-2, method=method).solve(TASKS[task].risk(surrogate))


# ----------------------------------------------------------------- rows


def row(task, surrogate, alpha, measured, target, met, **more):
    """One line of the table, printed as it is known."""
    line = {"task": task, "surrogate": surrogate, "alpha": alpha, **measured.as_dict(), **more}
    line |= {"target": target, "met": bool(met)}
    extra = "".join(f"  {k} {v:.3g}" for k, v in more.items() if isinstance(v, float))
    print(
        f"{task:4s} {surrogate:5s} {alpha:7.0e}  F {line['objective']:.6f}  gap {line['gap']:.1e}  "
        f"{line['passes']:4d} passes  {line['seconds']:7.3f} s  {line['evaluations']:6.0f} eval.  "
        f"QP {line['qp_share']:4.0%}{extra}  {'met' if met else 'MISSED'}",
        flush=True,
    )
    return line


def one_slack(risk, alpha, tol, ours, limit):
    """Seconds of the textbook method to a certified gap, and ours to the same gap.

    Where the method was stopped first, `one_slack_reached` is false and its seconds so far are a
    lower bound.
    """
    limit = max(5.0, min(limit, ENOUGH * ours.seconds))
    solver = CuttingPlane(alpha, tol=tol, method="one_slack", max_iter=1_000_000)
    start = clock()
    result = solver.solve(risk, callback=lambda _: clock() - start > limit)
    seconds = clock() - start
    same = measure(CuttingPlane(alpha, tol=tol), risk)
    return {
        "one_slack_tol": tol,
        "one_slack_seconds": seconds,
        "one_slack_reached": bool(result.gap <= tol),
        "one_slack_passes": int(result.data_passes),
        "one_slack_gap": float(result.gap),
        "speedup": seconds / ours.seconds,
        "speedup_same_gap": seconds / same.seconds,
    }


def rejected(task, risk, alpha):
    """Return a line for a trivial task, None for others."""
    reason = trivial(risk, alpha)
    if reason is None:
        return None
    name = risk.surrogate.name
    print(f"{task:4s} {name:5s} {alpha:7.0e}  {reason}", flush=True)
    return {"task": task, "surrogate": name, "alpha": alpha, "rejected": reason}


# ----------------------------------------------------------------- sections


def many_users(options):
    """M: gap 1e-9 within 60 passes and 300 evaluations; 20 times faster than 1-slack to 1e-3."""
    rows = []
    for surrogate in CONVEX:
        risk = TASKS["M"].risk(surrogate)
        for alpha in (1e-1, 1e-2, 1e-3, 1e-4):
            rows.append(rejected("M", risk, alpha) or many_users_row(risk, alpha, options))
    return rows


def many_users_row(risk, alpha, options):
    ours = measure(CuttingPlane(alpha, tol=1e-9), risk, options.repeats)
    slack = one_slack(risk, alpha, 1e-3, ours, options.limit)
    met = ours.result.gap <= 1e-9 and ours.result.data_passes <= 60 and ours.evaluations <= 300
    target = "gap 1e-9, 60 passes, 300 evaluations"
    if alpha <= 1e-3:
        met, target = met and slack["speedup"] >= 20, target + ", 20x 1-slack to 1e-3"
    return row("M", risk.surrogate.name, alpha, ours, target, met, **slack)


def one_user(options):
    """T: gap 1e-9 within 60 passes; 1e-6 in 1/15 of 1-slack's time."""
    rows = []
    for surrogate in CONVEX:
        risk, alpha = TASKS["T"].risk(surrogate), 1e-4
        refused = rejected("T", risk, alpha)
        rows += [refused] if refused else one_user_rows(risk, alpha, options)
    return rows


def one_user_rows(risk, alpha, options):
    name, limits = risk.surrogate.name, {"max_iter": 100_000, "time_limit": options.limit}
    exact = measure(CuttingPlane(alpha, tol=1e-9, **limits), risk, options.repeats)
    met = exact.result.gap <= 1e-9 and exact.result.data_passes <= 60
    first = row("T", name, alpha, exact, "gap 1e-9, 60 passes", met)
    ours = measure(CuttingPlane(alpha, tol=1e-6, **limits), risk, options.repeats)
    slack = one_slack(risk, alpha, 1e-6, ours, options.limit)
    met = ours.result.gap <= 1e-6 and slack["speedup"] >= 15
    return [first, row("T", name, alpha, ours, "gap 1e-6, 15x 1-slack", met, **slack)]


def against_dlib(options):
    """L: F - F* <= 4e-7 in 1/8 (alpha 1e-3) and 1/4 (alpha 1e-2) of dlib's time."""
    risk = TASKS["L"].risk("pauc")
    pair = dlib_data(risk)
    return [
        rejected("L", risk, alpha) or against_dlib_row(risk, alpha, pair, factor, options)
        for alpha, factor in ((1e-3, 8), (1e-2, 4))
    ]


def against_dlib_row(risk, alpha, pair, factor, options):
    best = CuttingPlane(alpha, tol=1e-9).solve(risk).lower_bound
    ours = measure(CuttingPlane(alpha, tol=EXCESS / max(best, 1e-3)), risk, options.repeats)
    more = {"excess": float(ours.result.objective - best)}
    if pair is not None:
        more |= dlib_to(pair, risk, alpha, best)
        more["speedup"] = more["dlib_seconds"] / ours.seconds
    met = more["excess"] <= EXCESS and more.get("speedup", 0) >= factor
    target = f"F - F* <= 4e-7 in 1/{factor} of dlib's time"
    return row("L", "pauc", alpha, ours, target, met, **more)


def dlib_data(risk):
    if find_spec("dlib") is None:
        print("dlib is not installed: left out")
        return None
    from benchmark_utils.peers import dlib_pairs

    return dlib_pairs(risk.data)


def dlib_to(pair, risk, alpha, best):
    """dlib's seconds at the loosest epsilon, of a grid, whose result has F - F* <= 4e-7."""
    from benchmark_utils.peers import dlib_weights

    for epsilon in EXCESS * 2.0 ** np.arange(4, -4, -1):
        start = clock()
        w = dlib_weights(pair, alpha, epsilon)
        seconds = clock() - start
        excess = float(alpha / 2 * (w @ w) + risk(w)[0] - best)
        print(
            f"     dlib epsilon {epsilon:.1e}: {seconds:.2f} s, F - F* = {excess:.1e}", flush=True
        )
        if excess <= EXCESS:
            break
    return {"dlib_epsilon": float(epsilon), "dlib_seconds": seconds, "dlib_excess": excess}


def behance_size(options):
    """H: gap 1e-6 within 80 passes and 150 evaluations; memory within 1.5 X."""
    rows, alpha = [], 1e-3
    for task in ("H", "H-20%"):
        data = TASKS[task].risk("ts").data
        for surrogate in ("ts", "max"):
            risk = EmpiricalRisk(make_surrogate(surrogate, TASKS[task].k), data)
            rows.append(rejected(task, risk, alpha) or behance_row(task, risk, alpha, options))
    return rows


def behance_row(task, risk, alpha, options):
    name = risk.surrogate.name
    ours = measure(CuttingPlane(alpha, tol=1e-6, time_limit=options.limit), risk, options.repeats)
    memory = peak_memory(task, name)
    met = ours.result.gap <= 1e-6 and ours.result.data_passes <= 80 and ours.evaluations <= 150
    met = met and memory["peak_over_X"] <= 1.5
    target = "gap 1e-6, 80 passes, 150 evaluations, memory 1.5 X"
    return row(task, name, alpha, ours, target, met, **memory)


def peak_memory(task, surrogate):
    """Peak of a process that does nothing but this fit."""
    found = answer(Path(__file__).with_name("memory.py"), "--child", task, surrogate, 1e-3)
    ratio = found["peak_mb"] / found["X_mb"]
    return {"peak_mb": found["peak_mb"], "X_mb": found["X_mb"], "peak_over_X": ratio}


def path(options):
    """T and M: ten alphas with cuts reused, in a third of ten cold solves."""
    return [path_of(task, surrogate, options) for task, surrogate in product("TM", CONVEX)]


def path_of(task, surrogate, options):
    risk = TASKS[task].risk(surrogate)
    alphas = np.logspace(-1, -4, 10)
    solver = CuttingPlane(alphas[0], tol=1e-6, max_iter=100_000, time_limit=options.limit)
    cold, warm, cold_seconds, warm_seconds = [], [], np.inf, np.inf
    for _ in range(options.repeats):
        start = clock()
        cold = [replace(solver, alpha=alpha).solve(risk) for alpha in alphas]
        cold_seconds = min(cold_seconds, clock() - start)
        start = clock()
        warm = alpha_path(risk, alphas, solver)
        warm_seconds = min(warm_seconds, clock() - start)
    line = {
        "task": task,
        "surrogate": surrogate,
        "cold_seconds": cold_seconds,
        "warm_seconds": warm_seconds,
        "cold_passes": sum(r.data_passes for r in cold),
        "warm_passes": sum(r.data_passes for r in warm),
        "worst_gap": max(r.gap for r in cold + warm),
        "ratio": warm_seconds / cold_seconds,
        "target": "1/3 of ten cold solves",
        "met": bool(warm_seconds <= cold_seconds / 3 and max(r.gap for r in warm) <= 1e-6),
    }
    print(
        f"path {task} {surrogate:5s} cold {cold_seconds:.2f} s, {line['cold_passes']} passes; warm "
        f"{warm_seconds:.2f} s, {line['warm_passes']} passes; ratio {line['ratio']:.2f}; worst gap "
        f"{line['worst_gap']:.1e}  {'met' if line['met'] else 'MISSED'}",
        flush=True,
    )
    return line


SECTIONS = {"M": many_users, "T": one_user, "L": against_dlib, "H": behance_size, "path": path}

if __name__ == "__main__":
    with threadpool_limits(1):
        main()
