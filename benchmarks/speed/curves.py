"""Draw gap against seconds and against passes from a result file of the benchopt benchmark.

    python -m benchmarks curves benchmarks/solvers_benchopt/outputs/RUN.parquet --output gaps.png

One row of panels per task. Solvers that do not count passes (dlib, the full problem) appear
against seconds only.
"""

import argparse
from pathlib import Path

import numpy as np

LOWEST = 1e-12
STYLES = {
    "bundle": ("#1b5e9b", "-"),
    "line_search": ("#3a9d5d", "-"),
    "one_slack": ("#7a4fb5", "-"),
    "subgradient_paper": ("#f2b134", "--"),
    "subgradient_averaged": ("#dd6b1f", "--"),
    "dlib": ("#b3202c", "-."),
    "cvxpy_full": ("#555555", ":"),
    "linear_svc_pairs": ("#d17fb3", ":"),
}
AXES = {"time": "seconds", "objective_data_passes": "passes over the data"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, default=Path("gaps.png"))
    options = parser.parse_args()
    figure(points(options.results)).savefig(options.output, dpi=130)


def points(files):
    import pandas as pd
    from benchopt.results import read_results

    return pd.concat([read_results(file) for file in files])


def figure(results):
    """Rows: tasks; columns: seconds, passes."""
    from matplotlib.figure import Figure

    tasks = list(results.groupby(["p_dataset_task", "p_obj_surrogate", "p_obj_alpha"]))
    drawn = Figure(figsize=(9.5, 2.6 * len(tasks) + 0.9), layout="constrained")
    panels = drawn.subplots(len(tasks), 2, squeeze=False, sharey=True)
    for row, (task, found) in zip(panels, tasks, strict=True):
        for axes, column in zip(row, AXES, strict=True):
            draw(axes, found, column)
        row[0].set_title("{}, {}, alpha {:g}".format(*task), loc="left", fontsize=10)
        row[0].set_ylabel("relative gap")
    handles = {}
    for axes in panels.flat:
        handles |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    drawn.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=9)
    return drawn


def draw(axes, found, column):
    """Lowest gap so far of every solver, without the start at w = 0."""
    for name, curve in found[found["stop_val"].between(1e-20, 1e20)].groupby("solver_name"):
        curve = curve[curve[column] > 0].sort_values(column)  # 0 passes: not counted
        if len(curve):
            x = curve[column].to_numpy(float)
            y = curve["objective_gap"].to_numpy(float)
            y = np.minimum.accumulate(np.maximum(y, LOWEST))
            color, line = style(name)
            axes.plot(x, y, line, color=color, marker=".", ms=4, lw=1.3, label=name)
    axes.set(xscale="log", yscale="log", xlabel=AXES[column])
    axes.grid(alpha=0.25)


def style(name):
    plain = name.split("[")[0]
    color, line = STYLES.get(plain, ("#000000", "-"))
    return color, {"piqp": "--", "clarabel": ":"}.get(name.split("=")[-1].rstrip("]"), line)


if __name__ == "__main__":
    main()
