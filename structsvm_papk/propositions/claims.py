"""The claims: what is said, by whom, under which hypothesis, and how it is tested.

Each claim has a control, a variant of the statement whose verdict must be the opposite: a claim
that holds fails once its hypothesis is dropped, a claim that fails holds once it is repaired.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from structsvm_papk.propositions.lists import Batch, shapes
from structsvm_papk.propositions.search import Statement

PAPER = "Hiranandani et al., ICML 2020"
DELTA = 1.0
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Claim:
    """A claim with its control.

    Attributes
    ----------
    id, title, claim, formula, source : str
    hypothesis : str
        In words; "none" when there is none.
    statement : Statement
    control : Statement
        Its verdict must be the opposite.
    control_words : str
    quantities : tuple of str
        What to compute at a counterexample.
    """

    id: str
    title: str
    claim: str
    formula: str
    source: str
    hypothesis: str
    statement: Statement
    control: Statement
    control_words: str
    quantities: tuple = ("risk",)


# ----------------------------------------------------------------- pieces of statements


def value(batch, name):
    """Value (n, m) of the risk or of a surrogate."""
    return batch.risk() if name == "risk" else batch.surrogate(name)


def below(*names):
    """Violation of ``names[0] <= names[1] <= ..``."""

    def violation(batch):
        values = [value(batch, name)[:, 0] for name in names]
        return np.max([a - b for a, b in itertools.pairwise(values)], axis=0)

    return violation


def vanish(*names):
    """Violation of: all these values are zero."""
    return lambda batch: np.max([np.abs(value(batch, name)[:, 0]) for name in names], axis=0)


def both(*violations):
    """Violation of several statements at once."""
    return lambda batch: np.max([v(batch) for v in violations], axis=0)


def equal(*names):
    """Violation of: all these values agree."""

    def violation(batch):
        values = np.array([value(batch, name)[:, 0] for name in names])
        return values.max(axis=0) - values.min(axis=0)

    return violation


def convex(name):
    """Violation of midpoint convexity along the two lists of an instance."""

    def violation(batch):
        middle = Batch(
            batch.p.mean(axis=1, keepdims=True), batch.q.mean(axis=1, keepdims=True), batch.shape
        )
        return value(middle, name)[:, 0] - value(batch, name).mean(axis=1)

    return violation


def realises(condition, delta=DELTA):
    """Return the hypothesis: the margin condition holds with margin delta."""
    return lambda batch: (batch.margins()[condition] >= delta - _ROUNDING).all(axis=1)


def move_into(condition, delta=DELTA):
    """Shift the negatives so that the largest one is as high as the condition allows."""

    def prepare(batch):
        p, beta = batch.best, batch.shape.beta
        limits = {
            "weak": p[..., beta - 1] - delta,
            "beta": p[..., batch.shape.n_pos - beta :].mean(axis=-1) - delta,
            "moderate": np.minimum(p[..., -1], p[..., beta - 1] - delta),
            "strong": p[..., -1] - delta,
        }
        shift = limits[condition] - batch.top
        return batch.with_scores(batch.p, _at_most(batch.q + shift[..., None], limits[condition]))

    return prepare


def _at_most(q, limit):
    """Rounding must not lift a negative above the limit."""
    return np.minimum(q, limit[..., None])


def margin_implies(premise, conclusion):
    """Violation of: the premise with margin delta gives the conclusion with margin delta."""

    def violation(batch):
        margins = batch.margins()
        gap = np.minimum(DELTA, margins[premise]) - margins[conclusion]
        return np.where(np.isfinite(gap), gap, DELTA)[:, 0]

    return violation


def _where(shape_ok, n_lists=1, **how):
    return [s for s in shapes(n_lists=n_lists, **how) if shape_ok(s)]


EVERY = shapes()
LOW = _where(lambda s: s.n_pos <= s.k)
HIGH = _where(lambda s: s.n_pos > s.k)
ENOUGH = _where(lambda s: s.n_pos >= 2 * s.beta - 1)
SMALL = shapes(largest=4, extra=((6, 6, 3), (5, 7, 2)))
TINY = [s for s in shapes(largest=4, extra=()) if s.k <= 3]
PAIRS = shapes(largest=4, extra=((8, 10, 5),), n_lists=2)
PAIRS_LOW = [s for s in PAIRS if s.n_pos <= s.k]


def _p_beta_above_mean(batch):
    p = batch.best[:, 0]
    return p[:, batch.shape.beta - 1] >= p.mean(axis=1) - _ROUNDING


def _without_hinge_margin(name):
    """Violation of risk <= surrogate whose hinge has margin 0 instead of 1."""

    def violation(batch):
        lowered = batch.with_scores(batch.p + 1.0, batch.q)
        return batch.risk()[:, 0] - value(lowered, name)[:, 0]

    return violation


def _clipped_limit(factor):
    """Violation of ``ClippedRamp(c s) = risk(s)`` at c = factor / (smallest winning gap)."""

    def violation(batch):
        gaps = batch.p[:, 0, :, None] - batch.q[:, 0, None, :]
        smallest = np.where(gaps > 0, gaps, np.inf).min(axis=(1, 2))
        c = factor / np.where(np.isfinite(smallest), smallest, 1.0)
        scaled = batch.with_scores(batch.p * c[:, None, None], batch.q * c[:, None, None])
        risk, never_below = batch.risk()[:, 0], below("risk", "clipped_ramp")
        distance = np.abs(scaled.surrogate("clipped_ramp")[:, 0] - risk)
        # rounding of the scaled scores enters relative to their size, not to 1
        return np.maximum(distance - 1e-13 * scaled.scale, never_below(batch))

    return violation


def _separated_gaps(batch):
    """Gaps of winning pairs are not tiny against the scores: else scaling meets rounding."""
    gaps = batch.p[:, 0, :, None] - batch.q[:, 0, None, :]
    smallest = np.where(gaps > 0, gaps, np.inf).min(axis=(1, 2))
    return smallest > 1e-6 * batch.scale


def _no_ties(batch):
    return (batch.p[:, 0, :, None] != batch.q[:, 0, None, :]).all(axis=(1, 2)) & _separated_gaps(
        batch
    )


def _with_ties(batch):
    return (batch.p[:, 0, :, None] == batch.q[:, 0, None, :]).any(axis=(1, 2)) & _separated_gaps(
        batch
    )


def _tie_some(batch):
    """Move the negatives so that one of them ties the best positive."""
    shift = batch.p[:, 0].max(axis=1) - batch.q[:, 0, 0]
    q = batch.q + shift[:, None, None]
    q[:, 0, 0] = batch.p[:, 0].max(axis=1)
    return batch.with_scores(batch.p, q)


# ----------------------------------------------------------------- the paper's claims


def _published():
    yield Claim(
        id="theorem1",
        title="Theorem 1",
        claim="The risk is the worst, over sets of k negatives, of the best AUC risk over sets of "
        "beta positives.",
        formula="risk = max over Z- of min over Z+ of AUC-risk(Z+, Z-)",
        source=f"{PAPER}, Theorem 1",
        hypothesis="none",
        statement=Statement(lambda b: np.abs(b.risk() - b.minimax_auc_risk())[:, 0], SMALL),
        control=Statement(lambda b: np.abs(b.risk() - b.maximin_auc_risk())[:, 0], SMALL),
        control_words="the best instead of the worst set of negatives",
    )
    yield Claim(
        id="prop1",
        title="Proposition 1",
        claim="Ramp is an upper bound of the risk; under the weak margin both are zero.",
        formula="Ramp >= risk; weak 1-margin => Ramp = risk = 0",
        source=f"{PAPER}, Proposition 1",
        hypothesis="second part: weak margin with delta = 1",
        statement=Statement(
            _or_free(below("risk", "ramp"), vanish("ramp", "risk"), realises("weak")),
            EVERY,
            prepare=_half(move_into("weak")),
        ),
        control=Statement(
            vanish("ramp", "risk"), EVERY, realises("weak", 0.5), move_into("weak", 0.5)
        ),
        control_words="weak margin with delta = 1/2 only",
        quantities=("risk", "ramp"),
    )
    yield Claim(
        id="prop2",
        title="Proposition 2",
        claim="Ramp is convex when no user has more than k positives.",
        formula="n_pos <= k => Ramp((s + s')/2) <= (Ramp(s) + Ramp(s'))/2",
        source=f"{PAPER}, Proposition 2",
        hypothesis="n_pos <= k",
        statement=Statement(convex("ramp"), PAIRS_LOW),
        control=Statement(convex("ramp"), PAIRS),
        control_words="n_pos > k allowed",
        quantities=("ramp",),
    )
    yield Claim(
        id="prop3-upper-bound",
        title="Proposition 3, first part",
        claim="Avg is an upper bound of the risk.",
        formula="Avg >= risk",
        source=f"{PAPER}, Proposition 3",
        hypothesis="none",
        statement=Statement(below("risk", "avg"), EVERY),
        control=Statement(below("risk", "avg"), EVERY, _p_beta_above_mean),
        control_words="only lists with p_(beta) >= mean(p)",
        quantities=("risk", "avg"),
    )
    yield Claim(
        id="prop3-consistency",
        title="Proposition 3, second part",
        claim="Under the beta margin, Avg and the risk are zero.",
        formula="beta 1-margin => Avg = risk = 0",
        source=f"{PAPER}, Proposition 3",
        hypothesis="beta margin with delta = 1",
        statement=Statement(vanish("avg", "risk"), EVERY, realises("beta"), move_into("beta")),
        control=Statement(vanish("avg", "risk"), ENOUGH, realises("beta"), move_into("beta")),
        control_words="only n_pos >= 2 beta - 1",
        quantities=("risk", "avg"),
    )
    yield Claim(
        id="prop3-corrected",
        title="Proposition 3, corrected",
        claim="Under the beta margin and n_pos >= 2 beta - 1, Avg and the risk are zero.",
        formula="beta 1-margin and n_pos >= 2 beta - 1 => Avg = risk = 0",
        source="corrected here",
        hypothesis="beta margin with delta = 1, n_pos >= 2 beta - 1",
        statement=Statement(vanish("avg", "risk"), ENOUGH, realises("beta"), move_into("beta")),
        control=Statement(vanish("avg", "risk"), EVERY, realises("beta"), move_into("beta")),
        control_words="n_pos < 2 beta - 1 allowed",
        quantities=("risk", "avg"),
    )
    yield Claim(
        id="prop4",
        title="Proposition 4",
        claim="TS is an upper bound of the risk; under the moderate margin both are zero.",
        formula="TS >= risk; moderate 1-margin => TS = risk = 0",
        source=f"{PAPER}, Proposition 4, for the exact TS of equation (14)",
        hypothesis="second part: moderate margin with delta = 1",
        statement=Statement(
            _or_free(below("risk", "ts"), vanish("ts", "risk"), realises("moderate")),
            EVERY,
            prepare=_half(move_into("moderate")),
        ),
        control=Statement(vanish("ts", "risk"), EVERY, realises("weak"), move_into("weak")),
        control_words="weak margin only",
        quantities=("risk", "ts"),
    )
    yield Claim(
        id="prop5-risk-ramp",
        title="Proposition 5, first link",
        claim="The risk is at most Ramp.",
        formula="risk <= Ramp",
        source=f"{PAPER}, Proposition 5",
        hypothesis="the hinge has margin 1",
        statement=Statement(below("risk", "ramp"), EVERY),
        control=Statement(_without_hinge_margin("ramp"), EVERY),
        control_words="hinge with margin 0",
        quantities=("risk", "ramp"),
    )
    yield Claim(
        id="prop5-ramp-avg",
        title="Proposition 5, second link",
        claim="Ramp is at most Avg.",
        formula="Ramp <= Avg",
        source=f"{PAPER}, Proposition 5",
        hypothesis="none",
        statement=Statement(below("ramp", "avg"), EVERY),
        control=Statement(below("ramp", "avg"), EVERY, _p_beta_above_mean),
        control_words="only lists with p_(beta) >= mean(p)",
        quantities=("risk", "ramp", "avg"),
    )
    yield Claim(
        id="prop5-avg-max",
        title="Proposition 5, third link",
        claim="Avg is at most Max.",
        formula="Avg <= Max",
        source=f"{PAPER}, Proposition 5",
        hypothesis="Max takes the beta lowest positives",
        statement=Statement(below("avg", "max"), EVERY),
        control=Statement(below("avg", "ramp"), EVERY),
        control_words="the beta best positives instead (Ramp)",
        quantities=("avg", "max"),
    )
    yield Claim(
        id="prop5-ramp-ts",
        title="Proposition 5, last link",
        claim="Ramp is at most TS.",
        formula="Ramp <= TS",
        source=f"{PAPER}, Proposition 5, for TS of equation (14)",
        hypothesis="none",
        statement=Statement(below("ramp", "ts"), EVERY),
        control=Statement(below("ramp", "ts_alg2"), EVERY),
        control_words="the objective of the paper's Algorithm 2 instead of (14)",
        quantities=("ramp", "ts", "ts_alg2"),
    )
    every = ("risk", "clipped_ramp", "ramp", "avg", "max", "ts", "ts_alg2", "pauc")
    yield Claim(
        id="prop6",
        title="Proposition 6",
        claim="Under the strong margin every surrogate and the risk are zero.",
        formula="strong 1-margin => Ramp = Avg = Max = TS = pAUC = risk = 0",
        source=f"{PAPER}, Proposition 6",
        hypothesis="strong margin with delta = 1",
        statement=Statement(vanish(*every), EVERY, realises("strong"), move_into("strong")),
        control=Statement(vanish(*every), EVERY, realises("strong", 0.5), move_into("strong", 0.5)),
        control_words="strong margin with delta = 1/2 only",
        quantities=every,
    )


def _or_free(always, under, condition):
    """One statement of two parts: `always` everywhere, `under` where the condition holds."""
    return lambda batch: np.maximum(
        always(batch), np.where(condition(batch), under(batch), -np.inf)
    )


def _half(prepare):
    """Move every second instance only."""

    def mixed(batch):
        moved = prepare(batch)
        p, q = batch.p.copy(), batch.q.copy()
        p[::2], q[::2] = moved.p[::2], moved.q[::2]
        return batch.with_scores(p, q)

    return mixed


# ----------------------------------------------------------------- corrected and further claims


def _further():
    yield Claim(
        id="chain",
        title="The order of the surrogates",
        claim="The links that do hold.",
        formula="risk <= ClippedRamp <= Ramp <= pAUC <= Max; Avg <= pAUC; risk <= TS <= TS_alg2",
        source="corrected here",
        hypothesis="none",
        statement=Statement(
            both(
                below("risk", "clipped_ramp", "ramp", "pauc", "max"),
                below("avg", "pauc"),
                below("risk", "ts", "ts_alg2"),
            ),
            EVERY,
        ),
        control=Statement(below("risk", "ramp", "avg", "max"), EVERY),
        control_words="the chain risk <= Ramp <= Avg <= Max as printed",
        quantities=("risk", "clipped_ramp", "ramp", "avg", "pauc", "max", "ts", "ts_alg2"),
    )
    for first, second in (
        ("ts", "max"),
        ("max", "ts"),
        ("ts", "avg"),
        ("avg", "ts"),
        ("ts", "ramp"),
    ):
        yield Claim(
            id=f"order-{first}-{second}",
            title=f"{first} <= {second}",
            claim=f"{first} is at most {second}.",
            formula=f"{first} <= {second}",
            source="no claim of the paper: TS has no order with Max, Avg or Ramp",
            hypothesis="none",
            statement=Statement(below(first, second), EVERY),
            control=_order_control(first, second),
            control_words=_ORDER_WORDS[first, second],
            quantities=("risk", first, second),
        )
    yield Claim(
        id="low-engagement",
        title="Users with few positives",
        claim="For n_pos <= k, TS, Ramp, Max and pAUC agree, and Avg is not above them: the "
        "printed order Ramp <= Avg is reversed.",
        formula="n_pos <= k => TS = Ramp = Max = pAUC >= Avg",
        source="corrected here (Jensen's inequality)",
        hypothesis="n_pos <= k",
        statement=Statement(both(equal("ts", "ramp", "max", "pauc"), below("avg", "ramp")), LOW),
        control=Statement(both(equal("ts", "ramp", "max", "pauc"), below("avg", "ramp")), HIGH),
        control_words="n_pos > k",
        quantities=("risk", "avg", "ts", "ramp", "max", "pauc"),
    )
    yield Claim(
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
    )
    yield Claim(
        id="clipped-ramp-consistency",
        title="ClippedRamp is consistent",
        claim="Scaled up, ClippedRamp equals the risk without any margin condition; it is never "
        "below it.",
        formula="ClippedRamp(c s) = risk(s) for c >= 1/(smallest gap p - q > 0), and >= risk for "
        "every c",
        source="this package",
        hypothesis="no positive ties a negative (not needed: see clipped-ramp-ties); c large",
        statement=Statement(_clipped_limit(1 + 1e-6), EVERY, _no_ties),
        control=Statement(_clipped_limit(0.5), EVERY, _no_ties),
        control_words="c half as large as needed",
        quantities=("risk", "clipped_ramp"),
    )
    yield Claim(
        id="clipped-ramp-ties",
        title="ClippedRamp is consistent with ties too",
        claim="The same where positives tie negatives: a tie costs min(1, 1 - 0) = 1 in both.",
        formula="ClippedRamp(c s) = risk(s), ties included",
        source="this package",
        hypothesis="some positive ties a negative; c large",
        statement=Statement(_clipped_limit(1 + 1e-6), EVERY, _with_ties, _tie_some),
        control=Statement(_clipped_limit(0.5), EVERY, _with_ties, _tie_some),
        control_words="c half as large as needed",
        quantities=("risk", "clipped_ramp"),
    )
    yield Claim(
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
    )
    for name in ("avg", "max", "ts", "pauc"):
        yield _convexity(name, True, "ramp", "Ramp instead, which is not convex")
    for name in ("ramp", "ts_alg2", "clipped_ramp"):
        yield _convexity(name, False, *_CONVEX_CONTROLS[name])


def _order_control(first, second):
    """Return the variant of a broken order that holds."""
    variants = {
        ("ts", "max"): Statement(below("ts", "max"), LOW),
        ("max", "ts"): Statement(below("max", "ts"), LOW),
        ("ts", "avg"): Statement(below("ts", "avg"), [s for s in LOW if s.n_pos == 1]),
        ("avg", "ts"): Statement(below("avg", "ts"), LOW),
        ("ts", "ramp"): Statement(below("ts", "ramp"), LOW),
    }
    return variants[first, second]


_ORDER_WORDS = {
    ("ts", "max"): "n_pos <= k (equal there)",
    ("max", "ts"): "n_pos <= k (equal there)",
    ("ts", "avg"): "n_pos = 1 (equal there)",
    ("avg", "ts"): "n_pos <= k",
    ("ts", "ramp"): "n_pos <= k (equal there)",
}
_CONVEX_CONTROLS = {
    "ramp": ("pauc", "all positives instead (pAUC)"),
    "ts_alg2": ("ts", "the exact TS"),
    "clipped_ramp": ("pauc", "hinge without the clip, all positives (pAUC)"),
}


def _convexity(name, expected, other, words):
    return Claim(
        id=f"convex-{name}",
        title=f"{name} is convex" + ("" if expected else "?"),
        claim=f"{name} is a convex function of the scores.",
        formula="f((s + s')/2) <= (f(s) + f(s'))/2",
        source=f"{PAPER}" if name not in ("clipped_ramp", "ts_alg2") else "this package",
        hypothesis="none",
        statement=Statement(convex(name), PAIRS),
        control=Statement(convex(other), PAIRS),
        control_words=words,
        quantities=(name,),
    )


# ----------------------------------------------------------------- margin conditions


def _margin_lattice():
    rows = (
        ("strong", "beta", EVERY, None, "the converse"),
        ("strong", "moderate", EVERY, None, "the converse"),
        ("moderate", "weak", EVERY, None, "the converse"),
        ("beta", "weak", ENOUGH, EVERY, "n_pos < 2 beta - 1 allowed"),
    )
    for premise, conclusion, where, wider, words in rows:
        flipped = (premise, conclusion) if wider else (conclusion, premise)
        control = Statement(
            margin_implies(*flipped), wider or EVERY, realises(flipped[0]), move_into(flipped[0])
        )
        yield _implication(premise, conclusion, where, control, words)
    beta_weak = Statement(
        margin_implies("beta", "weak"), ENOUGH, realises("beta"), move_into("beta")
    )
    yield _implication(
        "beta", "weak", EVERY, beta_weak, "only n_pos >= 2 beta - 1", suffix="-as-printed"
    )
    for premise, conclusion in (("beta", "moderate"), ("moderate", "beta")):
        control = Statement(
            margin_implies(premise, conclusion),
            [s for s in EVERY if s.beta == 1 and (premise == "beta" or s.n_pos == 1)],
            realises(premise),
            move_into(premise),
        )
        words = "beta = 1" if premise == "beta" else "n_pos = 1"
        yield _implication(premise, conclusion, EVERY, control, words)


def _implication(premise, conclusion, where, control, words, suffix=""):
    enough = " and n_pos >= 2 beta - 1" if where is ENOUGH else ""
    return Claim(
        id=f"margin-{premise}-{conclusion}{suffix}",
        title=f"{premise} margin implies {conclusion} margin",
        claim=f"The {premise} margin{enough} implies the {conclusion} margin with the same delta.",
        formula=f"{premise}{enough} => {conclusion}",
        source=f"{PAPER}, Definitions 2-5",
        hypothesis=f"{premise} margin with delta = 1{enough}",
        statement=Statement(
            margin_implies(premise, conclusion), where, realises(premise), move_into(premise)
        ),
        control=control,
        control_words=words,
        quantities=(f"delta_{premise}", f"delta_{conclusion}"),
    )


CLAIMS = {claim.id: claim for part in (_published, _further, _margin_lattice) for claim in part()}
