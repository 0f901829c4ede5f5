"""The table of targets: every number of docs/benchmarks.md, as ratios measured in one run.

    python -m benchmarks targets [--only M T L H path] [--repeats 3] [--json FILE]

One thread, processor seconds. "evaluations" are seconds divided by the seconds of one evaluation of
value and subgradient of the same risk; "QP" is the share of the restricted problems in the solve.
The textbook 1-slack method is given at most `--limit` seconds, and at most 30 times our time.
"""

import os
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from time import process_time as clock

import numpy as np

from benchmarks.speed.harness import (
    in_fresh_process,
    in_turns,
    machine,
    parsed,
    parser,
    save,
    timed,
    verdict,
)
from benchmarks.speed.measuring import measure, warm_path
from benchmarks.speed.tasks import TASKS, trivial
from structsvm_papk import CuttingPlane, EmpiricalRisk, make_surrogate

CONVEX = ("avg", "max", "ts", "pauc")
EXCESS = 4e-7  # F - F* at which dlib is compared
ENOUGH = 30  # times our time: a slower competitor is stopped there
LIBRARIES = ("numpy", "numba", "scipy", "cvxpy", "piqp", "clarabel", "dlib")


def main():
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", default=list(SECTIONS), choices=list(SECTIONS))
    options.add_argument(
        "--repeats", type=int, default=3, help="the fastest of so many runs counts"
    )
    options.add_argument("--limit", type=float, default=120.0, help="seconds for one solve")
    options.add_argument("--qp-solver", default="interior_point", help="of M: or piqp, clarabel")
    options = parsed(options, repeats=1, limit=0.5)
    report = {"machine": machine(LIBRARIES), "load_before": os.getloadavg()[0]}
    warm_up()
    for name in options.only:
        report[name], seconds = timed(lambda section=SECTIONS[name]: section(options))
        print(f"  [{name}: {seconds:.0f} s]")
    report["load_after"] = os.getloadavg()[0]
    save(options.json, report)


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
        f"QP {line['qp_share']:4.0%}{extra}  {verdict(met)}"
    )
    return line


def one_slack(risk, alpha, tol, ours, limit):
    """Seconds of the textbook method to a certified gap, and how many times ours they are.

    Where the method was stopped first, `one_slack_reached` is false and its seconds so far are a
    lower bound.
    """
    limit = min(limit, max(5.0, ENOUGH * ours.seconds))
    solver = CuttingPlane(alpha, tol=tol, method="one_slack", max_iter=1_000_000)
    start = clock()
    result, seconds = timed(lambda: solver.solve(risk, callback=lambda _: clock() - start > limit))
    return {
        "one_slack_tol": tol,
        "one_slack_seconds": seconds,
        "one_slack_reached": bool(result.gap <= tol),
        "one_slack_passes": int(result.data_passes),
        "one_slack_gap": float(result.gap),
        "speedup": seconds / ours.seconds,
    }


def rejected(task, risk, alpha):
    """Return a line for a trivial task, None for others."""
    reason = trivial(risk, alpha)
    if reason is None:
        return None
    name = risk.surrogate.name
    print(f"{task:4s} {name:5s} {alpha:7.0e}  {reason}")
    return {"task": task, "surrogate": name, "alpha": alpha, "rejected": reason}


# ----------------------------------------------------------------- sections


def many_users(options):
    """M: gap 1e-9 within 60 passes and 300 evaluations; 20 times faster than 1-slack to 1e-3."""
    rows = []
    (task,) = tasks(options, "M")
    for surrogate in CONVEX:
        risk = TASKS[task].risk(surrogate)
        for alpha in (1e-1, 1e-2, 1e-3, 1e-4):
            rows.append(rejected(task, risk, alpha) or many_users_row(task, risk, alpha, options))
    return rows


def many_users_row(task, risk, alpha, options):
    solver = CuttingPlane(alpha, tol=1e-9, qp_solver=options.qp_solver)
    ours = measure(solver, risk, options.repeats)
    slack = one_slack(risk, alpha, 1e-3, ours, options.limit)
    met = ours.result.gap <= 1e-9 and ours.result.data_passes <= 60 and ours.evaluations <= 300
    target = "gap 1e-9, 60 passes, 300 evaluations"
    if alpha <= 1e-3:
        met = met and slack["speedup"] >= 20
        target += ", 20x 1-slack to 1e-3"
    return row(task, risk.surrogate.name, alpha, ours, target, met, **slack)


def one_user(options):
    """T: gap 1e-9 within 60 passes; 1e-6 in 1/15 of 1-slack's time."""
    rows = []
    (task,) = tasks(options, "T")
    alpha = 1e-4
    for surrogate in CONVEX:
        risk = TASKS[task].risk(surrogate)
        refused = rejected(task, risk, alpha)
        rows += [refused] if refused else one_user_rows(task, risk, alpha, options)
    return rows


def one_user_rows(task, risk, alpha, options):
    name = risk.surrogate.name
    limits = {"max_iter": 100_000, "time_limit": options.limit}
    exact = measure(CuttingPlane(alpha, tol=1e-9, **limits), risk, options.repeats)
    met = exact.result.gap <= 1e-9 and exact.result.data_passes <= 60
    first = row(task, name, alpha, exact, "gap 1e-9, 60 passes", met)
    ours = measure(CuttingPlane(alpha, tol=1e-6, **limits), risk, options.repeats)
    slack = one_slack(risk, alpha, 1e-6, ours, options.limit)
    met = ours.result.gap <= 1e-6 and slack["speedup"] >= 15
    return [first, row(task, name, alpha, ours, "gap 1e-6, 15x 1-slack", met, **slack)]


def against_dlib(options):
    """L: F - F* <= 4e-7 in 1/8 (alpha 1e-3) and 1/4 (alpha 1e-2) of dlib's time."""
    (task,) = tasks(options, "L")
    risk = TASKS[task].risk("pauc")
    pair = dlib_data(risk)
    return [
        rejected(task, risk, alpha) or against_dlib_row(task, risk, alpha, pair, factor, options)
        for alpha, factor in ((1e-3, 8), (1e-2, 4))
    ]


def against_dlib_row(task, risk, alpha, pair, factor, options):
    best = CuttingPlane(alpha, tol=1e-9).solve(risk).lower_bound
    ours = measure(CuttingPlane(alpha, tol=EXCESS / max(best, 1e-3)), risk, options.repeats)
    more = {"excess": float(ours.result.objective - best)}
    if pair is not None:
        more |= dlib_to(pair, risk, alpha, best)
        more["speedup"] = more["dlib_seconds"] / ours.seconds
    met = more["excess"] <= EXCESS and more.get("speedup", 0) >= factor
    target = f"F - F* <= 4e-7 in 1/{factor} of dlib's time"
    return row(task, "pauc", alpha, ours, target, met, **more)


def dlib_data(risk):
    """One user's rows as dlib's vectors (slow, done once)."""
    if find_spec("dlib") is None:
        print("dlib is not installed: left out")
        return None
    import dlib

    rows = risk.data.X[risk.data.rows]
    pair = dlib.ranking_pair()
    n_pos = risk.data.n_pos[0]
    pair.relevant = dlib.vectors([dlib.vector(row) for row in rows[:n_pos].tolist()])
    pair.nonrelevant = dlib.vectors([dlib.vector(row) for row in rows[n_pos:].tolist()])
    return pair


def dlib_to(pair, risk, alpha, best):
    """dlib's seconds at the loosest epsilon, of a grid, whose result has F - F* <= 4e-7."""
    for epsilon in EXCESS * 2.0 ** np.arange(4, -4, -1):
        w, seconds = timed(lambda epsilon=epsilon: dlib_weights(pair, alpha, epsilon))
        excess = float(alpha / 2 * (w @ w) + risk(w)[0] - best)
        print(f"     dlib epsilon {epsilon:.1e}: {seconds:.2f} s, F - F* = {excess:.1e}")
        if excess <= EXCESS:
            break
    return {"dlib_epsilon": float(epsilon), "dlib_seconds": seconds, "dlib_excess": excess}


def dlib_weights(pair, alpha, epsilon):
    """What `svm_rank_trainer` finds: the minimiser of ``1/2 ||w||^2 + C (mean hinge over pairs)``.

    With C = 1/alpha that is F of the surrogate pauc with k = n_neg, divided by alpha; `epsilon` is
    the wanted ``F - F*``.
    """
    import dlib

    trainer = dlib.svm_rank_trainer()
    trainer.c = 1.0 / alpha
    trainer.epsilon = epsilon
    trainer.max_iterations = 100_000
    return np.array(trainer.train(pair).weights)


def large(options):
    """H: gap 1e-6 within 80 passes and 150 evaluations; memory within 1.5 X."""
    rows = []
    alpha = 1e-3
    for task in tasks(options, "H"):
        data = TASKS[task].risk("ts").data
        for surrogate in ("ts", "max"):
            risk = EmpiricalRisk(make_surrogate(surrogate, TASKS[task].k), data)
            rows.append(rejected(task, risk, alpha) or large_row(task, risk, alpha, options))
    return rows


def large_row(task, risk, alpha, options):
    name = risk.surrogate.name
    ours = measure(CuttingPlane(alpha, tol=1e-6, time_limit=options.limit), risk, options.repeats)
    memory = peak_memory(task, name)
    met = ours.result.gap <= 1e-6 and ours.result.data_passes <= 80 and ours.evaluations <= 150
    met = met and memory["peak_over_X"] <= 1.5
    target = "gap 1e-6, 80 passes, 150 evaluations, memory 1.5 X"
    return row(task, name, alpha, ours, target, met, **memory)


def peak_memory(task, surrogate):
    """Peak of a process that does nothing but this fit."""
    fit = in_fresh_process("memory", "peak", "--child", task, surrogate, 1e-3)
    ratio = fit["peak_mb"] / fit["X_mb"]
    return {"peak_mb": fit["peak_mb"], "X_mb": fit["X_mb"], "peak_over_X": ratio}


def path(options):
    """T and M: ten alphas with cuts reused, in a third of ten cold solves."""
    problems = product(tasks(options, "path"), CONVEX)
    return [path_of(task, surrogate, options) for task, surrogate in problems]


def path_of(task, surrogate, options):
    risk = TASKS[task].risk(surrogate)
    alphas = np.logspace(-1, -4, 10)
    solver = CuttingPlane(alphas[0], tol=1e-6, max_iter=100_000, time_limit=options.limit)
    ways = {
        "cold": lambda: [replace(solver, alpha=alpha).solve(risk) for alpha in alphas],
        "warm": lambda: warm_path(risk, alphas, solver),
    }
    best = in_turns(ways, options.repeats)
    cold, cold_seconds = best["cold"]
    warm, warm_seconds = best["warm"]
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
        f"{line['worst_gap']:.1e}  {verdict(line['met'])}"
    )
    return line


SECTIONS = {"M": many_users, "T": one_user, "L": against_dlib, "H": large, "path": path}
TASKS_OF = {"M": ("M",), "T": ("T",), "L": ("L",), "H": ("H", "H-20%"), "path": ("T", "M")}
SMALL_TASKS_OF = {"M": ("S",), "T": ("P",), "L": ("P",), "H": ("S",), "path": ("P", "S")}


def tasks(options, section):
    """What a section solves."""
    return (SMALL_TASKS_OF if options.small else TASKS_OF)[section]


if __name__ == "__main__":
    main()
