"""``demo``: the main job on data that comes with scikit-learn; no network."""

from pathlib import Path
from typing import Annotated

from sklearn.datasets import load_breast_cancer

from structsvm_papk.cli import compare
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.cli._shared.reading import Problem
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.plots import figures as plots
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.surrogates import CONVEX

K = 20
ALPHA = 0.1
_DEFAULT_PLOT = Path("structsvm-papk-demo.png")


def demo(
    *,
    tol: options.Tol = 1e-6,
    plot: Annotated[
        Path,
        options.output_option(
            help="File of the convergence plot; without this option it is drawn only if the extra "
            "'plot' is installed.",
            metavar="FILE",
        ),
    ] = _DEFAULT_PLOT,
    as_json: options.Json = False,
) -> None:
    """Solve four surrogates on scikit-learn's breast-cancer data, and compare with descent.

    The data are one list, malignant first, and k = 20. Each convex surrogate is solved to a
    certified gap, next to subgradient descent with 200 passes over the data.
    """
    wanted = plot.name != _DEFAULT_PLOT.name or plots.has_matplotlib()
    picture = plot if wanted else None
    check_outputs([], plot=picture)
    console.note(
        f"Breast-cancer data of scikit-learn as one list, malignant first: the surrogates of "
        f"pAp@{K} are solved to a certified gap, beside subgradient descents of 200 passes. "
        "To fuse search runs: structsvm-papk example-data --runs sample, then fuse"
    )
    X, benign = load_breast_cancer(return_X_y=True)
    data = RankingData.from_groups(X, benign == 0).standardized()
    with console.live() as watch:
        runs = run_all(data, CONVEX, K, ALPHA, watch=watch, tol=tol)
    if picture is None:
        console.note("no plot: matplotlib is missing; pip install matplotlib (the extra 'plot')")
    problem = Problem(depth=None)
    title = problem.title(k=K, alpha=ALPHA)
    compare.finish(runs, f"breast cancer: {title}", problem.content, picture, as_json)
