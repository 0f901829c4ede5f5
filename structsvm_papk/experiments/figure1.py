"""Figure 1 of the paper: every surrogate while one of them is minimised under a margin condition.

One user, five features, k = 30; the list is filtered so that the strong, beta or moderate condition
holds with margin 1 along a direction. Max, Avg and TS are minimised there (panels a to c), as the
paper did (normal start, step 2 or 3 over sqrt(t + 1), alpha = 0.001, 151 steps, features scaled to
range 1, TS as in its Algorithm 2) and by certified cutting planes (exact TS). The fourth panel is
the one that the paper could not draw: the weak condition, where only Ramp must reach zero. Ramp is
not convex; it is minimised by subgradient descent and by the convex-concave procedure.
"""

from dataclasses import dataclass, fields

import numpy as np

from structsvm_papk import metrics
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.datasets.margin_conditions import paper_figure1
from structsvm_papk.errors import InputError
from structsvm_papk.experiments._cells import Cells
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import MajorisedOracle
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate

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


def run(conditions=tuple(SETTINGS), seed=0, callback=None, cells=None):
    """Descent by the authors' recipe, then a certified solver (weak: CCCP), by condition."""
    panels, cells = [], cells or Cells()
    for condition in conditions:
        if condition not in SETTINGS:
            raise InputError(f"no condition {condition!r}; choose from {', '.join(SETTINGS)}")
        for certified in (False, True):
            key = ["figure1", condition, certified, seed]
            kept = cells.load(key)
            panels.append(_panel(condition, certified, seed) if kept is None else _unpacked(kept))
            if kept is None:
                cells.save(key, _packed(panels[-1]))
            if callback is not None:
                callback(panels[-1])
    return panels


def _packed(panel):
    """A panel as JSON can say it."""
    result = panel.result
    plain = {f.name: getattr(panel, f.name) for f in fields(panel)}
    return plain | {
        "curves": {name: values.tolist() for name, values in panel.curves.items()},
        "result": [result.w.tolist(), result.objective, result.lower_bound, str(result.status)],
    }


def _unpacked(kept):
    w, objective, lower_bound, status = kept["result"]
    result = SolverResult(np.array(w), objective, lower_bound, Status(status), alpha=ALPHA)
    curves = {name: np.array(values) for name, values in kept["curves"].items()}
    return Panel(**kept | {"curves": curves, "result": result})


def _panel(condition, certified, seed):
    data, truth = make_data(condition, seed)
    setting = SETTINGS[condition]
    name = setting.certified if certified else setting.recipe
    oracle = _Recorded(EmpiricalRisk(make_surrogate(name, K), data))
    if certified:
        solver, result = _certified(oracle)
        points = _best_so_far(oracle)
    else:
        descent = SubgradientDescent.paper(ALPHA, setting.eta, STEPS, seed=seed)
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
        return "cutting_plane", CuttingPlane(ALPHA, _TOL).solve(oracle)
    # a normal start may lie where a shorter w is always better, and then ends at zero
    return "cccp", CCCP(ALPHA).solve(oracle, oracle.risk.starts(ALPHA, names=("logistic",)))


def make_data(condition, seed):
    """The filtered list with features scaled to range 1, and the direction it was filtered along.

    The direction is expressed in the scaled features, so the condition holds along it unchanged.
    """
    drawn = paper_figure1(condition, K, seed=seed)
    low, high = drawn.X.min(axis=0), drawn.X.max(axis=0)
    X = (drawn.X - (low + high) / 2) / (high - low)
    return RankingData.from_groups(X, drawn.y), drawn.w_true * (high - low)


class _Recorded(MajorisedOracle):
    """A risk that remembers where it was asked, one cut an evaluation."""

    def __init__(self, risk):
        self.risk, self.n_features, self.convex = risk, risk.n_features, risk.convex
        self.surrogate = risk.surrogate
        self.points, self.objectives = [], []

    def __call__(self, w):
        value, slope = self.risk(w)
        self.points.append(np.array(w))
        self.objectives.append(value + ALPHA / 2 * (w @ w))
        return value, slope

    def majorant(self, w, kind):
        """A convex majorant, for the convex-concave procedure."""
        return self.risk.majorant(w, kind)


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
        curves["risk"][t] = metrics.per_user(f"pap@{K}", scores, data.labels, gain=False)[0]
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
