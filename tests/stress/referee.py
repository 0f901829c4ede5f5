"""What is held against the answers to a problem: the exact objective at all of their points."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from helpers.exact_risk import Wide, wide
from structsvm_papk import SolverResult
from structsvm_papk.solvers.solver import RISK_SCALE

TOL = 1e-6


class Answer(NamedTuple):
    """What one method said."""

    method: str
    result: SolverResult
    tol: float = TOL


def judge(problem, answers, report):
    """All answers to one problem, against the exact objective at all of their points."""
    if not answers:
        return
    W = np.array([result.w for _, result, _ in answers]).T
    risks, squares = problem.risks(W), (W.astype(Wide) ** 2).sum(axis=0)
    optima = {result.alpha: problem.optimum(result.alpha) for _, result, _ in answers}
    for place, (method, result, tol) in enumerate(answers):
        report.counts[f"status: {result.status}"] += 1
        values, optimum = Wide(result.alpha) / 2 * squares + risks, optima[result.alpha]
        lowest = values.min() if optimum is None else wide(optimum)
        gap = float((values[place] - lowest) / max(values[place], RISK_SCALE))
        if optimum is not None and result.status in ("converged", "stalled"):
            report.figures[f"{problem.surrogate}, {method.partition(':')[0]}"].append(gap)
        report.counts["bounds"] += result.lower_bound > -np.inf
        for kind, figures in _faults(problem, result, values[place], lowest, optimum, tol, gap):
            figures += f"; status {result.status}, {result.alpha=:.2g}"
            report.add(kind, method, figures)


def _faults(problem, result, value, lowest, optimum, tol, gap):
    """What contradicts an answer: kind and figures; the optimum is None where nobody knows it."""
    rounding, slack = problem.rounding(result.w, result.alpha, value)
    off, bound = float(abs(result.objective - value)), result.lower_bound
    if not off <= rounding:
        text = f"reported {result.objective:.15g}, is {float(value):.15g}, off by {off:.2g}"
        yield "objective is not that of the point", text
    excess = float(bound - lowest)
    if bound > -np.inf and (excess > slack if optimum is None else Fraction(bound) > optimum):
        kind = "false bound" if excess > 1e-9 * max(value, RISK_SCALE) else "false by rounding"
        yield kind, f"bound {bound:.17g} is {excess:.2g} too high"
    if result.status in ("converged", "degenerate") and gap > tol * (1 + 1e-6) + 1e-12:
        yield "converged, but is not optimal", f"true gap at least {gap:.2g} > {tol:.0e}"
    if result.status == "inconsistent" and problem.convex and problem.benign:
        yield "a convex risk is called inconsistent", f"objective {result.objective:.6g}"
