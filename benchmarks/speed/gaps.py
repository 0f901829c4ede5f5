"""The picture of README: gap to the best certified bound against passes and seconds.

python -m benchmarks gaps --folder docs/assets

Avg on 200 lists of digits at depth k = 5, alpha = 0.01: the cutting plane beside the solvers
without a certificate, 200 passes each, the paper's steps at the best of eighteen sizes (passes and
seconds of that run alone). Two pictures, `gap.png` and `gap-dark.png`, narrow enough for a
telephone.
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
    "subgradient": "steps eta/√t, best of 18",
    "averaged": "steps 1/(alpha t), averaged",
    "stochastic": "the same, list by list",
}
COLORS = {  # that stand out on white and on black
    "cutting_plane": "#2f7fd1",
    "subgradient": "#e08a1e",
    "averaged": "#2f9d68",
    "stochastic": "#c4564a",
}
EFFORTS = {"data_passes": "passes over the data", "seconds": "seconds"}
LOWEST = 1e-7


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
    """Two panels, one above the other, on a ground that lets the page's colour through."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    colors = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
    with pyplot.style.context([style, colors | {"axes.edgecolor": ink, "font.size": 12}]):
        figure, panels = pyplot.subplots(2, 1, figsize=(5.2, 6.8), layout="constrained")
        for axes, (effort, label) in zip(panels, EFFORTS.items(), strict=True):
            for run in runs:
                draw_run(axes, run, effort)
            axes.set(xscale="log", yscale="log", xlabel=label, ylabel="gap to the proven bound")
            axes.grid(alpha=0.25)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=11)
        figure.savefig(file, dpi=144, transparent=True)
        pyplot.close(figure)


def draw_run(axes, run, effort):
    """The gap of the best weights so far; a point where a certificate ends the run."""
    bound = run.best_bound
    objective = run.result.curve("objective")
    gap = np.maximum((objective - bound) / objective, LOWEST)
    spent = run.result.curve(effort)
    color = COLORS[run.solver]
    axes.step(spent, gap, where="post", color=color, lw=2, label=NAMES[run.solver])
    if run.result.converged:
        axes.plot(spent[-1], gap[-1], "o", color=color)


if __name__ == "__main__":
    main()
