"""The picture of `compare`: a long title stays inside it."""

import numpy as np
import pytest

from structsvm_papk import RankingData
from structsvm_papk.plots.figures import convergence_figure
from structsvm_papk.rankers import compare


@pytest.mark.parametrize("names", [["avg"], ["avg", "ts"]])
def test_a_long_title_is_not_cut(names):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(6), 10)
    data = RankingData.from_groups(rng.normal(size=(60, 3)), rng.random(60) < 0.3, users)
    title = "scores.csv: k = 2, depth 0.9, users' weight positives, standardized columns" * 2
    figure = convergence_figure(compare(data, names, 2, 0.1, etas=[1.0], tol=1e-2), title)
    figure.draw_without_rendering()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
