"""``demo``: the main job on data that comes with scikit-learn; no network."""

from pathlib import Path
from typing import Annotated

from sklearn.datasets import load_breast_cancer

from structsvm_papk.cli import compare
from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.plots import convergence as plots
from structsvm_papk.rankers.solver_race import ETAS
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.surrogates import CONVEX

K = 20
_DEFAULT_PLOT = Path("structsvm-papk-demo.png")


def demo(
    alpha: Annotated[float, options.option(options.PROBLEM, options.ALPHA)] = 0.1,
    tol: Annotated[
        float, options.option(options.SOLVER, "Relative certified gap to stop at.")
    ] = 1e-6,
    eta: compare.Eta = None,
    plot: Annotated[
        Path,
        options.option(
            options.OUTPUT,
            "Where to save the convergence plot; the default only where the extra 'plot' is "
            "installed.",
            metavar="FILE",
        ),
    ] = _DEFAULT_PLOT,
    as_json: options.Json = False,
) -> None:
    """Rank the breast-cancer data of scikit-learn as one list, malignant first.

    k = 20. Every convex surrogate is solved to a certified gap; subgradient descent gets the same
    number of data passes.
    """
    wanted = plot.name != _DEFAULT_PLOT.name or plots.has_matplotlib()
    picture = plot if wanted else None
    options.check_plot(picture)
    X, benign = load_breast_cancer(return_X_y=True)
    data = RankingData.from_groups(X, benign == 0).standardized()
    with progress.live() as watch:
        runs = run_all(data, CONVEX, K, alpha, etas=eta or ETAS, watch=watch, tol=tol)
    if picture is None:
        console.note("no plot: matplotlib is missing; pip install matplotlib (the extra 'plot')")
    weighting = options.Weighting(depth="k")
    title = options.problem_text(*weighting.content.values(), k=K, alpha=alpha)
    compare.finish(runs, f"breast cancer: {title}", weighting.content, picture, as_json)
