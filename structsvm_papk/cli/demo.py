"""``demo``: the main job on data that comes with scikit-learn; no network."""

from pathlib import Path

from sklearn.datasets import load_breast_cancer

from structsvm_papk.cli import compare
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.declared import Use
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.plots import figures as plots
from structsvm_papk.rankers.solver_race import ETAS
from structsvm_papk.rankers.solver_race import compare as run_all
from structsvm_papk.surrogates import CONVEX

K = 20
_DEFAULT_PLOT = Path("structsvm-papk-demo.png")


def demo(
    *,
    alpha: float = options.PROBLEM(0.1, options.ALPHA),
    tol: float = options.SOLVER(1e-6, options.TOL),
    eta: list[float] | None = compare.ETA,
    plot: Path = options.OUTPUT(
        _DEFAULT_PLOT,
        "Where to save the convergence plot; the default only where the extra 'plot' is installed.",
        "FILE",
        use=Use.DRAWS,
    ),
    as_json: bool = options.JSON,
) -> None:
    """Rank the breast-cancer data of scikit-learn as one list, malignant first.

    k = 20. Every convex surrogate is solved to a certified gap; subgradient descent gets the same
    number of data passes.
    """
    console.note(
        f"Breast-cancer data of scikit-learn as one list, malignant first: the surrogates of "
        f"pAp@{K} are solved to a certified gap, beside subgradient descent with as many passes. "
        "To fuse search runs: structsvm-papk example-data --runs sample, then fuse"
    )
    wanted = plot.name != _DEFAULT_PLOT.name or plots.has_matplotlib()
    picture = plot if wanted else None
    options.check_plot(picture)
    X, benign = load_breast_cancer(return_X_y=True)
    data = RankingData.from_groups(X, benign == 0).standardized()
    with console.live() as watch:
        runs = run_all(data, CONVEX, K, alpha, etas=eta or ETAS, watch=watch, tol=tol)
    if picture is None:
        console.note("no plot: matplotlib is missing; pip install matplotlib (the extra 'plot')")
    weighting = options.Weighting(depth="k")
    title = weighting.title(k=K, alpha=alpha)
    compare.finish(runs, f"breast cancer: {title}", weighting.content, picture, as_json)
