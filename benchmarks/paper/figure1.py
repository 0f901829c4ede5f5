"""Figure 1 of the paper: every surrogate while one of them is minimised under a margin condition.

One user, five features, k = 30; the list is filtered so that the strong, beta or moderate condition
holds with margin 1 along a direction. Max, Avg and TS are minimised there (panels a to c), as the
paper did (normal start, step 2 or 3 over sqrt(t + 1), alpha = 0.001, 151 steps, features scaled to
range 1, TS as in its Algorithm 2) and by certified cutting planes (exact TS). The fourth panel is
the one that the paper could not draw: the weak condition, where only Ramp must reach zero. Ramp is
not convex; it is minimised by subgradient descent and by the convex-concave procedure.
"""

from dataclasses import dataclass

import numpy as np

from structsvm_papk import (
    CCCP,
    CuttingPlane,
    EmpiricalRisk,
    RankingData,
    SubgradientDescent,
    make_surrogate,
    metrics,
)
from structsvm_papk.errors import InputError

K, ALPHA, STEPS = 30, 1e-3, 151
SHOWN = ("max", "avg", "ts", "ramp")
_TOL = 1e-6


@dataclass(frozen=True)
class Setting:
    """What a panel minimises: the authors' surrogate and step, and the certified surrogate."""

    recipe: str
    eta: float
    certified: str


SETTINGS = {
    "strong": Setting("max", 2.0, "max"),
    "beta": Setting("avg", 3.0, "avg"),
    "moderate": Setting("ts_alg2", 3.0, "ts"),
    "weak": Setting("ramp", 3.0, "ramp"),
}
# what the figure shows to tend to zero; Ramp is below Avg and TS in the paper's figures
TENDS_TO_ZERO = {
    "strong": ["max", "avg", "ts", "ramp"],
    "beta": ["avg", "ramp"],
    "moderate": ["ts", "ramp"],
    "weak": None,
}


@dataclass(frozen=True)
class Panel:
    """One margin condition, one solver.

    `curves` holds every surrogate of `SHOWN`, and the pAp@k ``risk``, after each evaluation: at
    that iterate for descent, at the best point so far otherwise; `at_truth` the same at a multiple
    of the direction along which the list was filtered.
    """

    condition: str
    optimised: str
    solver: str
    n_pos: int
    n_neg: int
    curves: dict
    result: object
    at_truth: dict

    def as_dict(self):
        """Plain values for JSON; published says what the figure shows to tend to zero."""
        return {
            "condition": self.condition,
            "optimised": self.optimised,
            "solver": self.solver,
            "n_pos": self.n_pos,
            "n_neg": self.n_neg,
            "published": {"tends_to_zero": TENDS_TO_ZERO[self.condition]},
            "measured": {name: float(values[-1]) for name, values in self.curves.items()},
            "at_filtered_direction": self.at_truth,
            "objective": self.result.objective,
            "lower_bound": self.result.lower_bound,
            "gap": self.result.gap,
            "status": str(self.result.status),
            "curves": {name: values.tolist() for name, values in self.curves.items()},
        }


def run(conditions=tuple(SETTINGS), seed=0, callback=None):
    """Descent by the authors' recipe, then a certified solver (weak: CCCP), by condition."""
    panels = []
    for condition in conditions:
        if condition not in SETTINGS:
            raise InputError(f"no condition {condition!r}; choose from {', '.join(SETTINGS)}")
        for certified in (False, True):
            panels.append(_panel(condition, certified, seed))
            if callback is not None:
                callback(panels[-1])
    return panels


def _panel(condition, certified, seed):
    data, truth = make_data(condition, seed)
    setting = SETTINGS[condition]
    name = setting.certified if certified else setting.recipe
    oracle = _Recorded(make_surrogate(name, K), data)
    if certified:
        solver, result = _certified(oracle)
        points = _best_so_far(oracle)
    else:
        descent = SubgradientDescent(ALPHA, setting.eta, STEPS, start_scale=1.0, seed=seed)
        solver, result, points = "descent", descent.solve(oracle), oracle.points
    return Panel(
        condition,
        name,
        solver,
        int(data.n_pos[0]),
        int(data.n_neg[0]),
        _values_along(points, data),
        result,
        {shown: float(v[0]) for shown, v in _values_along([truth], data).items()},
    )


def _certified(oracle):
    if oracle.convex:
        return "cutting_plane", CuttingPlane(ALPHA, _TOL).solve(_OneCut(oracle))
    # a normal start may lie where a shorter w is always better, and then ends at zero
    return "cccp", CCCP(ALPHA, starts=("logistic",), continuation=()).solve(oracle)


def make_data(condition, seed):
    """The filtered list with features scaled to range 1, and the direction it was filtered along.

    The direction is expressed in the scaled features, so the condition holds along it unchanged.
    """
    X, labels = _filtered(condition, np.random.default_rng(seed))
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - (low + high) / 2) / (high - low)
    return RankingData.from_groups(X, labels), -np.ones(5) * (high - low)


def _filtered(condition, rng, n_pos=250, n_neg=2000, min_neg=300):
    """Rows and labels of one user: the negatives that leave the margin 1 along ``w = -1_5``.

    Positives ``N(0, I)``, negatives ``N(0.5 * 1_5, I)``. While fewer than `min_neg` negatives
    remain, the lowest positive is dropped.
    """
    pos = rng.standard_normal((n_pos, 5))
    neg = rng.standard_normal((n_neg, 5)) + 0.5
    pos = pos[np.argsort(pos.sum(axis=1), kind="stable")]
    for n_kept in range(n_pos, 0, -1):
        p, beta = -pos[:n_kept].sum(axis=1), min(n_kept, K)
        largest = {
            "strong": p[-1] - 1,
            "beta": p[-beta:].mean() - 1,
            "moderate": min(p[-1], p[beta - 1] - 1),
            "weak": p[beta - 1] - 1,
        }[condition]
        keep = -neg.sum(axis=1) <= largest
        if keep.sum() >= min_neg:
            break
    return np.vstack([pos[:n_kept], neg[keep]]), np.repeat([1, 0], [n_kept, keep.sum()])


class _Recorded(EmpiricalRisk):
    """A risk that remembers where it was asked."""

    def __init__(self, surrogate, data):
        super().__init__(surrogate, data)
        self.points, self.objectives = [], []

    def __call__(self, w):
        value, slope = super().__call__(w)
        self.points.append(np.array(w))
        self.objectives.append(value + ALPHA / 2 * (w @ w))
        return value, slope


class _OneCut:
    """A risk that gives one cut an evaluation."""

    def __init__(self, risk):
        self.risk, self.n_features = risk, risk.n_features

    def __call__(self, w):
        return self.risk(w)


def _best_so_far(oracle):
    lowest = np.minimum.accumulate(oracle.objectives)
    first = np.searchsorted(-lowest, -lowest, side="left")  # where each value was first reached
    return [oracle.points[i] for i in first]


def _values_along(points, data):
    """Every surrogate and the risk at each point."""
    surrogates = {name: make_surrogate(name, K) for name in SHOWN}
    curves = {name: np.empty(len(points)) for name in (*SHOWN, "risk")}
    for t, w in enumerate(points):
        scores = data.scores(w)
        for name, surrogate in surrogates.items():
            values, _ = surrogate.value_and_subgradient(scores, data.indptr, data.n_pos)
            curves[name][t] = values[0]
        curves["risk"][t] = 1.0 - metrics.evaluate(f"pap@{K}", scores, data.labels).values[0, 0]
    return curves


# ----------------------------------------------------------------- the picture

_COLOURS = {
    "max": "#b3402a",
    "avg": "#d99a1c",
    "ts": "#2f7d5b",
    "ramp": "#1b5e9b",
    "risk": "#222222",
}
_NAMES = {"max": "Max", "avg": "Avg", "ts": "TS", "ts_alg2": "TS (Algorithm 2)", "ramp": "Ramp"}
_DASHES = {"max": "-", "avg": "--", "ts": "-.", "ramp": "-", "risk": ":"}
_TITLES = {"strong": "a) strong", "beta": "b) beta", "moderate": "c) moderate", "weak": "weak"}
_SOLVERS = {"cutting_plane": "cutting plane", "cccp": "CCCP"}


def plot(panels):
    """Draw the panels: one column a condition, the authors' recipe above, certified below."""
    from matplotlib.figure import Figure

    conditions = list(dict.fromkeys(panel.condition for panel in panels))
    figure = Figure(figsize=(1.2 + 3.4 * len(conditions), 6.6), layout="constrained")
    axes = figure.subplots(2, len(conditions), squeeze=False, sharey=True)
    for panel in panels:
        row = int(panel.solver != "descent")
        _draw(axes[row, conditions.index(panel.condition)], panel)
    for row in axes:
        row[0].set_ylabel("value on the list")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    for line in legend.get_lines():
        line.set_linewidth(1.8)  # what is minimised is drawn wider, another curve in each panel
    return figure


def _draw(axes, panel):
    for name, values in panel.curves.items():
        label = _NAMES.get(name, "pAp@k risk")
        width = 2.6 if name == panel.optimised[: len(name)] else 1.4
        steps = np.arange(1, values.size + 1)
        axes.plot(steps, values, _DASHES[name], color=_COLOURS[name], lw=width, label=label)
    solver = "descent" if panel.condition == "weak" else "authors' descent"  # theirs has no Ramp
    solver = solver if panel.solver == "descent" else _SOLVERS[panel.solver]
    optimised = f"{_NAMES[panel.optimised]} by {solver}"
    axes.set_title(f"{_TITLES[panel.condition]} margin\n{optimised}", fontsize=10)
    axes.set(ylim=(-0.03, 2), xlabel="evaluations")
    axes.grid(alpha=0.25)
