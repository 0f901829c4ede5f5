"""What is held against the answers to a problem: the exact objective at all of their points."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from helpers.exact_risk import Wide, wide
from structsvm_papk.solvers.result import RISK_SCALE

TOL = 1e-6


@dataclass(frozen=True)
class Answer:
    """What one method said, as plain values."""

    method: str
    alpha: float
    tol: float
    w: np.ndarray
    objective: float
    bound: float
    status: str


def answer(method, result, tol=TOL):
    """From a `SolverResult`."""
    return Answer(
        method, result.alpha, tol, result.w, result.objective, result.lower_bound,
        str(result.status),
    )  # fmt: skip


def judge(problem, answers, report):
    """All answers to one problem, against the exact objective at all of their points."""
    if not answers:
        return
    W = np.array([each.w for each in answers]).T
    risks, squares = problem.risks(W), (W.astype(Wide) ** 2).sum(axis=0)
    optima = {each.alpha: problem.optimum(each.alpha) for each in answers}
    for place, each in enumerate(answers):
        report.counts[f"status: {each.status}"] += 1
        for kind, figures in _faults(
            problem, each, Wide(each.alpha) / 2 * squares + risks, place, optima[each.alpha], report
        ):
            report.add(kind, each.method, f"{figures}; status {each.status}, {each.alpha=:.2g}")


def _faults(problem, each, values, place, optimum, report):
    """What contradicts an answer: kind and figures; the optimum is None where nobody knows it."""
    value, lowest = values[place], values.min() if optimum is None else wide(optimum)
    scale = max(value, RISK_SCALE)
    if each.status == "zero is optimal":
        if value < 1 - 1e-9:
            yield "zero is not optimal", f"there is an objective of {float(value):.12g}"
        return
    rounding, slack = problem.rounding(each.w, each.alpha, value)
    off, gap = float(abs(each.objective - value)), float((value - lowest) / scale)
    if not off <= rounding:
        text = f"reported {each.objective:.15g}, is {float(value):.15g}, off by {off:.2g}"
        yield "objective is not that of the point", text
    if each.bound > -np.inf:
        report.counts["bounds"] += 1
        excess = float(each.bound - lowest)
        if excess > slack if optimum is None else Fraction(each.bound) > optimum:
            kind = "false bound" if excess > 1e-9 * scale else "false by rounding"
            yield kind, f"bound {each.bound:.17g} is {excess:.2g} too high"
    if optimum is not None and each.status in ("converged", "stalled"):
        report.figures[f"{problem.surrogate}, {each.method.partition(':')[0]}"].append(gap)
    if each.status in ("converged", "degenerate") and gap > each.tol * (1 + 1e-6) + 1e-12:
        yield "converged, but is not optimal", f"true gap at least {gap:.2g} > {each.tol:.0e}"
    if each.status == "inconsistent" and problem.convex and problem.benign:
        yield "a convex risk is called inconsistent", f"objective {each.objective:.6g}"
