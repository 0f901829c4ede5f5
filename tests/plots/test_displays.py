import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from structsvm_papk import RankingData, metrics
from structsvm_papk.plots import convergence_figure
from structsvm_papk.plots import rankings as displays
from structsvm_papk.rankers import compare

pytestmark = pytest.mark.portable

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def rows(n_users=30, n=25):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100, 100 + n_users), n)
    X = rng.normal(size=(groups.size, 3))
    y = (X[:, 0] + rng.normal(size=groups.size) > 1).astype(int)
    return X, y, groups


X, Y, GROUPS = rows()
MODEL = LogisticRegression().fit(X, Y)
SCORES = MODEL.decision_function(X)


def test_pap_against_k():
    shown = displays.PAPDisplay.from_predictions(
        y_true=Y, y_score=SCORES, groups=GROUPS, ks=[1, 3, 20], name="logistic", n_resamples=50
    )
    names = ["pap@1", "pap@3", "pap@20"]
    table = metrics.evaluate(names, SCORES, Y, GROUPS)
    np.testing.assert_allclose(shown.ax_.lines[0].get_ydata(), list(map(table.mean, names)))
    assert (shown.lower <= shown.mean).all() and (shown.mean <= shown.upper).all()
    assert shown.n_used[2] < shown.n_used[0]
    assert "at k = 20" in shown.ax_.get_title()
    again = displays.PAPDisplay.from_predictions(
        y_true=Y, y_score=-SCORES, groups=GROUPS, ks=[1, 3, 20], ax=shown.ax_, n_resamples=50
    )
    assert again.figure_ is shown.figure_


def test_solvers_of_a_figure_can_be_told_apart_in_grey_and_title_and_legend_are_not_cut():
    names = ("cutting_plane", "one_slack", "dual_ascent", "subgradient", "averaged", "stochastic")
    data = RankingData.from_groups(X, Y, GROUPS)
    runs = compare(data, ["avg"], 2, 0.1, solvers=names, etas=[0.1, 1.0], passes=10)
    title = "scores.csv: k = 2, depth 0.9, users' weight positives, standardized columns" * 2
    figure = convergence_figure(runs, title)
    figure.draw_without_rendering()
    for text in (figure._suptitle, figure.legends[0]):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    solid = [line for line in figure.axes[0].lines if "certified" not in line.get_label()]
    assert len({line.get_marker() for line in solid}) == len(names)
    assert len({line.get_color() for line in solid}) == len(names)
    assert "subgradient (best of 2)" in [line.get_label() for line in solid]
