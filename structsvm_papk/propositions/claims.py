"""The claims: what is said, by whom, under which hypothesis, and how it is tested.

Each claim has a control, a variant of the statement whose verdict must be the opposite: a claim
that holds fails once its hypothesis is dropped, a claim that fails holds once it is repaired.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.propositions.lists import (
    DELTA,
    ENOUGH,
    EVERY,
    HIGH,
    LOW,
    PAIRS,
    PAIRS_LOW,
    PRINTED_NOT_ABOVE,
    SMALL,
    TINY,
    TINY_ALL_PAIRS,
    Batch,
    Measure,
    Shape,
    at_printed_share,
    below,
    both,
    clipped_limit,
    convex,
    deviation,
    distinct,
    equal,
    half,
    margin_implies,
    move_into,
    p_beta_above_mean,
    realises,
    separated_gaps,
    tie_some,
    vanish,
    without_hinge_margin,
)
from structsvm_papk.propositions.search import Claim, Statement

PAPER = "Hiranandani et al., ICML 2020"
_EVERYTHING = ("risk", "clipped_ramp", "ramp", "avg", "max", "ts", "ts_alg2", "pauc")


def under(
    condition: str, violation: Measure, where: list[Shape] = EVERY, delta: float = DELTA
) -> Statement:
    """A statement about lists on which a margin condition holds."""
    return Statement(violation, where, realises(condition, delta), move_into(condition, delta))


def bound_and_zero(name: str, condition: str) -> Statement:
    """``risk <= name``, and both are zero where a margin condition holds: on half of the lists."""
    bound = below("risk", name)
    zero = vanish(name, "risk")
    holds = realises(condition)

    def violation(batch: Batch) -> Array:
        return np.maximum(bound(batch), np.where(holds(batch), zero(batch), -np.inf))

    return Statement(violation, EVERY, prepare=half(move_into(condition)))


def _published(title: str, **rest: Any) -> Claim:
    return Claim(title=title, source=f"{PAPER}, {title.partition(',')[0]}", **rest)


PUBLISHED = (
    _published(
        id="theorem1",
        title="Theorem 1",
        claim="The risk is the worst, over sets of k negatives, of the best AUC risk over sets of "
        "beta positives.",
        formula="risk = max over Z- of min over Z+ of AUC-risk(Z+, Z-)",
        statement=Statement(lambda b: np.abs(b.risk() - b.least_auc_risks().max(-1))[:, 0], SMALL),
        control=Statement(lambda b: np.abs(b.risk() - b.least_auc_risks().min(-1))[:, 0], SMALL),
        control_words="the best instead of the worst set of negatives",
    ),
    _published(
        id="prop1",
        title="Proposition 1",
        claim="Ramp is an upper bound of the risk; under the weak margin both are zero.",
        formula="Ramp >= risk; weak 1-margin => Ramp = risk = 0",
        hypothesis="second part: weak margin with delta = 1",
        statement=bound_and_zero("ramp", "weak"),
        control=under("weak", vanish("ramp", "risk"), delta=0.5),
        control_words="weak margin with delta = 1/2 only",
        quantities=("risk", "ramp"),
    ),
    _published(
        id="prop2",
        title="Proposition 2",
        claim="Ramp is convex when no user has more than k positives.",
        formula="n_pos <= k => Ramp((s + s')/2) <= (Ramp(s) + Ramp(s'))/2",
        hypothesis="n_pos <= k",
        statement=Statement(convex("ramp"), PAIRS_LOW),
        control=Statement(convex("ramp"), PAIRS),
        control_words="n_pos > k allowed",
        quantities=("ramp",),
    ),
    _published(
        id="prop3-upper-bound",
        title="Proposition 3, first part",
        claim="Avg is an upper bound of the risk.",
        formula="Avg >= risk",
        statement=Statement(below("risk", "avg"), EVERY),
        control=Statement(below("risk", "avg"), EVERY, p_beta_above_mean),
        control_words="only lists with p_(beta) >= mean(p)",
        quantities=("risk", "avg"),
    ),
    _published(
        id="prop3-consistency",
        title="Proposition 3, second part",
        claim="Under the beta margin, Avg and the risk are zero.",
        formula="beta 1-margin => Avg = risk = 0",
        hypothesis="beta margin with delta = 1",
        statement=under("beta", vanish("avg", "risk")),
        control=under("beta", vanish("avg", "risk"), ENOUGH),
        control_words="only n_pos >= 2 beta - 1",
        quantities=("risk", "avg"),
    ),
    _published(
        id="equation9",
        title="Equation (9), from equation (8)",
        claim="The minimum over sets of beta positives may be taken after the maximum over "
        "orderings: the step on which Propositions 3 and 5 rest.",
        formula="max_Z- min_Z+ max_pi = max_Z- max_pi min_Z+",
        statement=Statement(lambda b: np.abs(b.equation_8() - b.equation_9())[:, 0], TINY),
        control=Statement(lambda b: (b.equation_9() - b.equation_8())[:, 0], TINY),
        control_words="(8) >= (9) instead of (8) = (9)",
        quantities=("equation (8)", "equation (9)"),
    ),
    Claim(
        id="prop3-corrected",
        title="Proposition 3, corrected",
        claim="Under the beta margin and n_pos >= 2 beta - 1, Avg and the risk are zero.",
        formula="beta 1-margin and n_pos >= 2 beta - 1 => Avg = risk = 0",
        source="corrected here",
        hypothesis="beta margin with delta = 1, n_pos >= 2 beta - 1",
        statement=under("beta", vanish("avg", "risk"), ENOUGH),
        control=under("beta", vanish("avg", "risk")),
        control_words="n_pos < 2 beta - 1 allowed",
        quantities=("risk", "avg"),
    ),
    Claim(
        id="prop4",
        title="Proposition 4",
        claim="TS is an upper bound of the risk; under the moderate margin both are zero.",
        formula="TS >= risk; moderate 1-margin => TS = risk = 0",
        source=f"{PAPER}, Proposition 4, for the exact TS of equation (14)",
        hypothesis="second part: moderate margin with delta = 1",
        statement=bound_and_zero("ts", "moderate"),
        control=under("weak", vanish("ts", "risk")),
        control_words="weak margin only",
        quantities=("risk", "ts"),
    ),
    _published(
        id="prop5-risk-ramp",
        title="Proposition 5, first link",
        claim="The risk is at most Ramp.",
        formula="risk <= Ramp",
        hypothesis="the hinge has margin 1",
        statement=Statement(below("risk", "ramp"), EVERY),
        control=Statement(without_hinge_margin("ramp"), EVERY),
        control_words="hinge with margin 0",
        quantities=("risk", "ramp"),
    ),
    _published(
        id="prop5-ramp-avg",
        title="Proposition 5, second link",
        claim="Ramp is at most Avg.",
        formula="Ramp <= Avg",
        statement=Statement(below("ramp", "avg"), EVERY),
        control=Statement(below("ramp", "avg"), EVERY, p_beta_above_mean),
        control_words="only lists with p_(beta) >= mean(p)",
        quantities=("risk", "ramp", "avg"),
    ),
    _published(
        id="prop5-avg-max",
        title="Proposition 5, third link",
        claim="Avg is at most Max.",
        formula="Avg <= Max",
        hypothesis="Max takes the beta lowest positives",
        statement=Statement(below("avg", "max"), EVERY),
        control=Statement(below("avg", "ramp"), EVERY),
        control_words="the beta best positives instead (Ramp)",
        quantities=("avg", "max"),
    ),
    Claim(
        id="prop5-ramp-ts",
        title="Proposition 5, last link",
        claim="Ramp is at most TS.",
        formula="Ramp <= TS",
        source=f"{PAPER}, Proposition 5, for TS of equation (14)",
        statement=Statement(below("ramp", "ts"), EVERY),
        control=Statement(below("ramp", "ts_alg2"), EVERY),
        control_words="the objective of the paper's Algorithm 2 instead of (14)",
        quantities=("ramp", "ts", "ts_alg2"),
    ),
    _published(
        id="prop6",
        title="Proposition 6",
        claim="Under the strong margin every surrogate and the risk are zero.",
        formula="strong 1-margin => Ramp = Avg = Max = TS = pAUC = risk = 0",
        hypothesis="strong margin with delta = 1",
        statement=under("strong", vanish(*_EVERYTHING)),
        control=under("strong", vanish(*_EVERYTHING), delta=0.5),
        control_words="strong margin with delta = 1/2 only",
        quantities=_EVERYTHING,
    ),
)

LOOSE = (
    _published(
        id="loose-bound",
        title="Section 3.1, the metric in the loss only",
        claim="The structural surrogate whose scores are those of the AUC is never below the risk.",
        formula="risk <= max over orderings of risk(pi) + 1/(n_pos n_neg) sum pi_ij (q_j - p_i)",
        statement=Statement(below("risk", "loose structural"), TINY),
        control=Statement(below("max", "loose structural"), TINY),
        control_words="Max instead of the risk",
        quantities=("risk", "loose structural"),
    ),
    Claim(
        id="loose-zero",
        title="The metric in the loss only, under a margin",
        claim="The surrogate with the metric in the loss only is zero under the strong margin, as "
        "the others are.",
        formula="strong 1-margin => the maximum of loose-bound = 0",
        source="no claim of the paper, which calls this surrogate loose and does not use it",
        hypothesis="strong margin with delta = 1",
        statement=under("strong", vanish("loose structural"), TINY),
        control=under("strong", vanish("loose structural"), TINY_ALL_PAIRS),
        control_words="n_pos <= k = n_neg: every pair counts",
        quantities=("risk", "loose structural"),
    ),
)

THEOREM_2 = (
    _published(
        id="theorem2-ties",
        title="Theorem 2, the population value",
        claim="The printed population value is at most what the risk of large samples tends to, "
        "for laws with ties too.",
        formula="Pr(p <= q, both in their top shares) / (ab) <= lim R^",
        statement=Statement(lambda b: (b.printed_population_value() - b.risk())[:, 0], EVERY),
        control=Statement(
            lambda b: (b.printed_population_value() - b.risk())[:, 0], EVERY, distinct
        ),
        control_words="no two scores are equal",
        quantities=("risk", "printed population value"),
    ),
    _published(
        id="theorem2-share",
        title="Theorem 2, the share of positives",
        claim="The population value at the printed share of positives is at most the one at the "
        "share that the risk counts: so it is where the one-sided bound is true for large samples.",
        formula="R_{g,b} <= R_{a,b}, a = beta/n_pos, b = k/n_neg, g = 1 if n_pos/(n_pos + n_neg) "
        "<= b else b",
        hypothesis="no two scores are equal",
        statement=Statement(at_printed_share, EVERY, distinct),
        control=Statement(at_printed_share, PRINTED_NOT_ABOVE, distinct),
        control_words="g <= beta/n_pos",
        quantities=("risk", "risk at the printed share"),
    ),
    Claim(
        id="theorem2-corrected",
        title="Theorem 2, corrected",
        claim="Two risks differ by at most the distance of the laws of positives plus that of "
        "negatives, each divided by the share that counts.",
        formula="|R - R^| <= sup|P - P^| / a + sup|N - N^| / b, a = beta/n_pos, b = k/n_neg",
        source="corrected here",
        statement=Statement(deviation(True), PAIRS),
        control=Statement(deviation(False), PAIRS),
        control_words="not divided by the shares",
        quantities=("risk",),
    ),
)

_EQUAL_WHEN_FEW = ("ts", "ts_alg2", "ramp", "max", "pauc")

FURTHER = (
    Claim(
        id="chain",
        title="The order of the surrogates",
        claim="The links that do hold.",
        formula="risk <= ClippedRamp <= Ramp <= pAUC <= Max; Avg <= pAUC; risk <= TS <= TS_alg2; "
        "Ramp <= TS_alg2",
        source="corrected here",
        statement=Statement(
            both(
                below("risk", "clipped_ramp", "ramp", "pauc", "max"),
                below("avg", "pauc"),
                below("risk", "ts", "ts_alg2"),
                below("ramp", "ts_alg2"),
            ),
            EVERY,
        ),
        control=Statement(below("risk", "ramp", "avg", "max"), EVERY),
        control_words="the chain risk <= Ramp <= Avg <= Max as printed",
        quantities=("risk", "clipped_ramp", "ramp", "avg", "pauc", "max", "ts", "ts_alg2"),
    ),
    Claim(
        id="low-engagement",
        title="Users with few positives",
        claim="For n_pos <= k, TS, TS_alg2, Ramp, Max and pAUC agree, and Avg is not above them: "
        "the printed order Ramp <= Avg is reversed.",
        formula="n_pos <= k => TS = TS_alg2 = Ramp = Max = pAUC >= Avg",
        source="corrected here (Jensen's inequality)",
        hypothesis="n_pos <= k",
        statement=Statement(both(equal(*_EQUAL_WHEN_FEW), below("avg", "ramp")), LOW),
        control=Statement(both(equal(*_EQUAL_WHEN_FEW), below("avg", "ramp")), HIGH),
        control_words="n_pos > k",
        quantities=("risk", "avg", "ts", "ramp", "max", "pauc"),
    ),
    Claim(
        id="low-engagement-avg",
        title="Avg for users with few positives",
        claim="For n_pos <= k, Avg is an upper bound of the risk.",
        formula="n_pos <= k => Avg >= risk",
        source="follows from Proposition 3 as printed",
        hypothesis="n_pos <= k",
        statement=Statement(below("risk", "avg"), LOW),
        control=Statement(below("risk", "avg"), [s for s in LOW if s.n_pos == 1]),
        control_words="one positive only",
        quantities=("risk", "avg"),
    ),
    Claim(
        id="clipped-ramp-consistency",
        title="ClippedRamp is consistent",
        claim="Scaled up, ClippedRamp equals the risk without any margin condition, ties included "
        "(a tie costs 1 in both); it is never below it.",
        formula="ClippedRamp(c s) = risk(s) for c >= 1/(smallest gap p - q > 0), and >= risk for "
        "every c",
        source="this package",
        hypothesis="c large",
        statement=Statement(clipped_limit(1 + 1e-6), EVERY, separated_gaps, half(tie_some)),
        control=Statement(clipped_limit(0.5), EVERY, separated_gaps, half(tie_some)),
        control_words="c half as large as needed",
        quantities=("risk", "clipped_ramp"),
    ),
    Claim(
        id="ts-enumeration",
        title="Exact TS",
        claim="The isotonic formula computes equation (14).",
        formula="1/(beta k) sum_ij (q_(j) - t~_i)_+ = max over Z-, orderings of (14)",
        source="this package",
        hypothesis="the isotonic step is made",
        statement=Statement(
            lambda b: np.abs(b.surrogate("ts") - b.ts_by_enumeration())[:, 0], TINY
        ),
        control=Statement(
            lambda b: np.abs(b.surrogate("ts_alg2") - b.ts_by_enumeration())[:, 0], TINY
        ),
        control_words="the paper's Algorithm 2, which leaves it out",
        quantities=("ts", "ts_alg2"),
    ),
    Claim(
        id="ts-first-line",
        title="What Algorithm 2 computes",
        claim="Algorithm 2 computes the first line of (14), in which the minimum over sets of beta "
        "positives stands outside the maximum over orderings.",
        formula="TS_alg2 = max over Z- of min over Z+ of max over orderings of (14)",
        source="this package",
        statement=Statement(
            lambda b: np.abs(b.surrogate("ts_alg2") - b.ts_first_line())[:, 0], TINY
        ),
        control=Statement(lambda b: np.abs(b.surrogate("ts") - b.ts_first_line())[:, 0], TINY),
        control_words="the exact TS, of the second line",
        quantities=("ts", "ts_alg2"),
    ),
    _published(
        id="ts-derivation",
        title="Equation (14), from the first line to the second",
        claim="The first line of (14) is at most the second, in which minimum and maximum have "
        "changed places.",
        formula="max_Z- min_Z+ max_pi <= max_Z- max_pi min_Z+",
        statement=Statement(lambda b: (b.ts_first_line() - b.ts_by_enumeration())[:, 0], TINY),
        control=Statement(lambda b: (b.ts_by_enumeration() - b.ts_first_line())[:, 0], TINY),
        control_words="at least, instead of at most",
        quantities=("ts", "ts_alg2"),
    ),
)


_ONE_POSITIVE = [shape for shape in EVERY if shape.n_pos == 1]
_ONE_COUNTED = [shape for shape in EVERY if shape.beta == 1]
_ORDERS = (  # the smaller, the larger, and for the control: lists where it is so
    ("ts", "max", LOW, "n_pos <= k (equal there)"),
    ("max", "ts", LOW, "n_pos <= k (equal there)"),
    ("ts", "avg", _ONE_POSITIVE, "n_pos = 1 (equal there)"),
    ("avg", "ts", LOW, "n_pos <= k"),
    ("ts", "ramp", LOW, "n_pos <= k (equal there)"),
)
_CONVEX = (  # name, and for the control: a relative with the opposite answer
    ("avg", "ramp", "Ramp instead, which is not convex"),
    ("max", "ramp", "Ramp instead, which is not convex"),
    ("ts", "ramp", "Ramp instead, which is not convex"),
    ("pauc", "ramp", "Ramp instead, which is not convex"),
    ("ramp", "pauc", "all positives instead (pAUC)"),
    ("ts_alg2", "ts", "the exact TS"),
    ("clipped_ramp", "pauc", "hinge without the clip, all positives (pAUC)"),
)


def _order(first: str, second: str, where: list[Shape], words: str) -> Claim:
    return Claim(
        id=f"order-{first}-{second}",
        title=f"{first} <= {second}",
        claim=f"{first} is at most {second}.",
        formula=f"{first} <= {second}",
        source="no claim of the paper: TS has no order with Max, Avg or Ramp",
        statement=Statement(below(first, second), EVERY),
        control=Statement(below(first, second), where),
        control_words=words,
        quantities=("risk", first, second),
    )


_CONVEX_SOURCES = {
    "pauc": "Narasimhan and Agarwal, ICML 2013",
    "ramp": "no claim of the paper: by Proposition 2 it is where n_pos <= k",
    "ts_alg2": "no claim of the paper, which says it of the TS that it means to compute",
    "clipped_ramp": "this package",
}


def _convexity(name: str, relative: str, words: str) -> Claim:
    return Claim(
        id=f"convex-{name}",
        title=f"{name} is convex" + "?" * (name in ("ramp", "ts_alg2", "clipped_ramp")),
        claim=f"{name} is a convex function of the scores.",
        formula="f((s + s')/2) <= (f(s) + f(s'))/2",
        source=_CONVEX_SOURCES.get(name, PAPER),
        statement=Statement(convex(name), PAIRS),
        control=Statement(convex(relative), PAIRS),
        control_words=words,
        quantities=(name,),
    )


def _implies(premise: str, conclusion: str, where: list[Shape] = EVERY) -> Statement:
    return under(premise, margin_implies(premise, conclusion), where)


_IMPLICATIONS = (  # premise, conclusion and where; the control and its words
    ("strong", "beta", EVERY, _implies("beta", "strong"), "the converse"),
    ("strong", "moderate", EVERY, _implies("moderate", "strong"), "the converse"),
    ("moderate", "weak", EVERY, _implies("weak", "moderate"), "the converse"),
    ("beta", "weak", ENOUGH, _implies("beta", "weak"), "n_pos < 2 beta - 1 allowed"),
    ("beta", "weak", EVERY, _implies("beta", "weak", ENOUGH), "only n_pos >= 2 beta - 1"),
    ("beta", "moderate", EVERY, _implies("beta", "moderate", _ONE_COUNTED), "beta = 1"),
    ("moderate", "beta", EVERY, _implies("moderate", "beta", _ONE_POSITIVE), "n_pos = 1"),
)


def _implication(
    premise: str, conclusion: str, where: list[Shape], control: Statement, words: str
) -> Claim:
    as_printed = (premise, conclusion) == ("beta", "weak") and where is EVERY
    enough = ""
    source = f"{PAPER}, Definitions 2-5"
    if where is ENOUGH:
        enough = " and n_pos >= 2 beta - 1"
        source = "corrected here"
    elif {premise, conclusion} == {"beta", "moderate"}:
        source = "no claim of the paper: neither follows from the other"
    return Claim(
        id=f"margin-{premise}-{conclusion}" + "-as-printed" * as_printed,
        title=f"{premise} margin implies {conclusion} margin",
        claim=f"The {premise} margin{enough} implies the {conclusion} margin with the same delta.",
        formula=f"{premise}{enough} => {conclusion}",
        source=source,
        hypothesis=f"{premise} margin with delta = 1{enough}",
        statement=_implies(premise, conclusion, where),
        control=control,
        control_words=words,
        quantities=(f"delta_{premise}", f"delta_{conclusion}"),
    )


CLAIMS = (
    *PUBLISHED,
    *LOOSE,
    *THEOREM_2,
    *FURTHER,
    *(_order(*row) for row in _ORDERS),
    *(_convexity(*row) for row in _CONVEX),
    *(_implication(*row) for row in _IMPLICATIONS),
)
