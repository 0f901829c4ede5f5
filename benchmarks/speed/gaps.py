"""The picture of README: how far each solver is above the proven lower bound, pass after pass.

python -m benchmarks gaps --folder docs/assets

Avg on 200 lists of digits at depth k = 5, alpha = 0.01: the cutting plane beside two descents,
200 passes each. The paper's descent has the best of eighteen step sizes; the passes and seconds of
the other seventeen are not counted. Two pictures, `gap.png` and `gap-dark.png`, that can be read
on a telephone, 360 pixels wide.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np

from structsvm_papk import RankingData
from structsvm_papk.datasets import digit_queries
from structsvm_papk.rankers import compare

K = 5
ALPHA = 0.01
PASSES = 200
NAMES = {  # of the solvers, as the picture calls them
    "cutting_plane": "cutting plane",
    "subgradient": "subgradient descent",
    "stochastic": "stochastic descent",
}
COLORS = {  # that stand out on white and on black
    "cutting_plane": "#2f7fd1",
    "subgradient": "#e08a1e",
    "stochastic": "#c4564a",
}
LOWEST = 2e-7
WIDTH = 3.75  # inches: 360 pixels on a screen of 96 pixels an inch, so that points are real ones


def main():
    """Solve, draw, and print where each solver ends."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("."), help="where the pictures go")
    parser.add_argument("--small", action="store_true", help="twenty lists, for a try")
    options = parser.parse_args()
    n_queries = 20 if options.small else 200
    data = RankingData.from_groups(*digit_queries("train", n_queries=n_queries))
    settings = {"solvers": list(NAMES), "passes": PASSES, "standardize": False}
    runs = compare(data, ["avg"], K, ALPHA, **settings)
    for run in runs:
        result = run.result
        effort = f"{result.data_passes} passes, {result.seconds:.2f} s"
        print(f"{run.label}: {result.objective:.5f}, gap {run.gap:.1e}, {effort}")
    options.folder.mkdir(parents=True, exist_ok=True)
    draw(runs, options.folder / "gap.png", "default", "#24292f")
    draw(runs, options.folder / "gap-dark.png", "dark_background", "#d7dce2")


def draw(runs, file, style, ink):
    """One panel on a ground that lets the page's colour through."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    colors = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
    with pyplot.style.context([style, colors | {"axes.edgecolor": ink, "font.size": 11}]):
        figure, axes = pyplot.subplots(figsize=(WIDTH, 3.3), layout="constrained")
        for run in runs:
            draw_run(axes, run)
        axes.set(yscale="log", ylim=(LOWEST, 0.3), xlim=(0, PASSES), xlabel="passes over the data")
        axes.set_title("above the proven lower bound", loc="left", fontsize=11)
        axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(numticks=8))
        axes.yaxis.set_major_formatter(lambda gap, _: f"{100 * gap:.6g}%")
        axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.xaxis.set_major_locator(matplotlib.ticker.MultipleLocator(50))
        axes.grid(alpha=0.25)
        axes.legend(loc="lower left", frameon=False, labelspacing=0.3, bbox_to_anchor=(0.07, 0.1))
        figure.savefig(file, dpi=240, transparent=True)
        pyplot.close(figure)


def draw_run(axes, run):
    """The gap of the best weights so far; where a certificate ends the run, a point."""
    bound = run.best_bound
    objective = run.result.curve("objective")
    gap = np.maximum((objective - bound) / objective, LOWEST)
    passes = run.result.curve("data_passes")
    color = COLORS[run.solver]
    axes.step(passes, gap, where="post", color=color, lw=2.5, label=NAMES[run.solver])
    if run.result.converged:
        axes.plot(passes[-1], gap[-1], "o", color=color, ms=8)
        words = f"proven after {passes[-1]:.0f} passes"
        axes.annotate(words, (passes[-1], gap[-1]), (10, -4), textcoords="offset points")


if __name__ == "__main__":
    main()
