"""The picture of a ranker's terms: what is drawn where, that it can be read, what is refused."""

import sys
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import validate_data

from helpers.marks import slow
from structsvm_papk import PAPKRanker
from structsvm_papk.data.columns.terms import AdditiveFunction, Curve, Cut, Levels, Pair
from structsvm_papk.errors import InputError
from structsvm_papk.plots import TermsDisplay
from structsvm_papk.plots.panel import MISSING
from structsvm_papk.plots.terms import terms_figure
from structsvm_papk.rankers.additive import AdditiveRanker

pytestmark = pytest.mark.portable

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def curve(name, x, deviation=1.0, column=0, gap=None):
    """A curve that rises and falls, with knots at quantiles of a column."""
    knots = np.unique(np.quantile(x, np.linspace(0, 1, 17)))
    values = np.cumsum(RNG.normal(size=knots.size))
    return Curve(name, column, knots, values - values[0], 0.0, deviation, gap)


def line(name, slope, deviation, knot=0.0, gap=None):
    return Curve(name, 0, np.array([knot]), np.zeros(1), slope, deviation, gap)


COLUMNS = {
    "age": RNG.normal(40, 10, 500),
    "in stock": RNG.integers(0, 2, 500).astype(float),
    "price": RNG.lognormal(3, 2, 500),
    "sensor": np.where(np.arange(500) == 7, 1e6, RNG.normal(1000, 1, 500)),
    "both_signs": 50 * RNG.standard_cauchy(500),
    "_hidden": RNG.normal(-4000, 1000, 500),
    "a$b^$c": 1e-7 * RNG.normal(size=500),
    "W" * 60: RNG.uniform(1.70e9, 1.72e9, 500),
    "constant": np.full(500, 7.0),
    "rare": (np.arange(500) < 1).astype(float),
}
X = np.column_stack(list(COLUMNS.values()))
CURVES = [curve(name, x, len(name), j) for j, (name, x) in enumerate(COLUMNS.items())]


class Ranker(AdditiveRanker):
    """A ranker whose terms are given."""

    missing = None
    groups = None

    def fit(self, X):
        validate_data(self, X)
        self.function_ = AdditiveFunction(tuple(CURVES))
        return self


def drawn(axes):
    """The curve of a panel, x and y."""
    return axes.lines[0].get_data()


def bars(axes):
    """Where the bars of a panel are high, as middles of their edges."""
    (stairs,) = axes.patches
    heights, edges, _ = stairs.get_data()
    return ((edges[1:] + edges[:-1]) / 2)[heights > 0]


def texts(axes):
    return [text.get_text().strip() for text in axes.texts]


def level_bars(axes):
    """The bars of levels, or of missing values beside a curve: names and heights."""
    if "missing" in texts(axes):
        return ["missing"], [gap_bar(axes)[1, 1]]
    if not axes.containers:
        return [], []
    bars = axes.containers[0]
    return tick_names(axes)[: len(bars)], [bar.get_height() for bar in bars]


def tick_names(axes):
    return [label.get_text() for label in axes.get_xticklabels()]


def gap_bar(axes):
    """The bar beside a curve, from 0 to its height."""
    orange = matplotlib.colors.to_rgba(MISSING)
    (bar,) = (lines for lines in axes.collections if tuple(lines.get_edgecolor()[0]) == orange)
    return bar.get_segments()[0]


def written(figure):
    """The texts of the panels and around them, with their boxes."""
    figure.draw_without_rendering()
    area = figure.subfigs[0] if figure.subfigs else figure.axes[0].texts[0]
    texts = [text for text in area.findobj(matplotlib.text.Text) if text.get_text().strip()]
    return {text: text.get_window_extent() for text in texts if text.get_visible()}


def assert_readable(figure):
    """No text stands on another or leaves the figure."""
    boxes = written(figure)
    for (a, first), (b, second) in combinations(boxes.items(), 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert width < 1 or height < 2, (a.get_text(), b.get_text())
    for text, box in boxes.items():
        assert box.x0 >= -1 and box.x1 <= figure.bbox.width + 1, text.get_text()
        assert box.y0 >= -1 and box.y1 <= figure.bbox.height + 1, text.get_text()


def test_columns_that_move_scores_most_come_first_and_say_their_share():
    shown = TermsDisplay([line("a", 1, 1.0), line("b", 1, 6.0), line("c", -1, 3.0)])
    shown.plot(n_columns=2)
    assert [axes.get_title("left") for axes in shown.axes_] == ["b", "c"]
    assert [axes.get_title("right") for axes in shown.axes_] == ["60%", "30%"]
    assert shown.figure_.texts == [] and "2\u00a0of\u00a03\u00a0columns" in "".join(
        text.get_text() for text in written(shown.figure_)
    )
    alike = TermsDisplay([line("0", 1, 1.0), line("1", 1, 1.0), line("2", 0, 1e-4)]).plot()
    assert [axes.get_title("left") for axes in alike.axes_] == ["column 0", "column 1", "column 2"]
    assert alike.axes_[2].get_title("right") == "<1%"


@pytest.mark.parametrize("rows", [None, X])
def test_curves_are_drawn_less_their_mean_on_one_scale(rows):
    shown = TermsDisplay(CURVES[:5], None if rows is None else rows[:, :5]).plot()
    assert len({axes.get_ylim() for axes in shown.axes_}) == 1
    by_name = {axes.get_title("left"): axes for axes in shown.axes_}
    for j, given in enumerate(CURVES[:5]):
        axes = by_name[given.name]
        x, y = drawn(axes)
        mean = given(given.knots if rows is None else rows[:, j]).mean()
        np.testing.assert_allclose(y, given(x) - mean, atol=1e-12)
        inside = (given.knots > x[0]) & (given.knots < x[-1])
        assert inside.any() or given.knots.size == 2
        assert np.isin(given.knots[inside], x).all()
        low, high = axes.get_ylim()
        assert low < y.min() and y.max() < high
        assert axes.get_xlim()[0] < x[0] and x[-1] < axes.get_xlim()[1]


def test_knots_or_rows_are_shown_below_the_curves():
    knots = TermsDisplay(CURVES[:4]).plot()
    (rug,) = knots.axes_[-1].collections[1:]
    assert knots.axes_[-1].get_title("left") == "age"
    np.testing.assert_array_equal([path[0, 0] for path in rug.get_segments()], CURVES[0].knots)
    for axes in knots.axes_:  # every curve is above the rug
        lowest = axes.transData.transform([7.0, drawn(axes)[1].min()])
        assert axes.transAxes.inverted().transform(lowest)[1] > rug.get_segments()[0][1, 1] > 0

    counts = RNG.integers(0, 6, 300).astype(float)
    with_holes = np.where(np.arange(300) < 20, np.nan, counts)[:, None]
    few = TermsDisplay([curve("few", counts)], with_holes).plot()
    np.testing.assert_allclose(bars(few.axes_[0]), np.arange(6), atol=1e-9)
    dense = TermsDisplay(CURVES[:3], X[:, :3]).plot()
    thin = TermsDisplay(CURVES[:3], sparse.csr_array(X[:, :3])).plot()
    for a, b in zip(dense.axes_, thin.axes_, strict=True):
        np.testing.assert_array_equal(drawn(a), drawn(b))
        np.testing.assert_array_equal(bars(a), bars(b))


@pytest.mark.parametrize("rows", [slow(None), X])
def test_heavy_tails_leave_the_middle_half_of_the_rows_room(rows):
    shown = TermsDisplay(CURVES, rows).plot()
    scales = {axes.get_title("left"): axes.get_xscale() for axes in shown.axes_}
    assert scales["age"] == scales["sensor"] == scales["rare"] == "linear"
    assert scales["price"] == scales["both_signs"] == "asinh"
    for axes in shown.axes_:
        name = axes.get_title("left")
        if name in ("age", "price", "sensor", "both_signs"):
            middle = np.quantile(COLUMNS[name], [0.25, 0.75])
            places = axes.transAxes.inverted().transform(
                axes.transData.transform([(x, 0) for x in middle])
            )
            assert np.ptp(places[:, 0]) >= 0.045, name
    straight = TermsDisplay([line("price", 0.01, 1.0)], X[:, [2]]).plot()
    x, _ = drawn(straight.axes_[0])
    np.testing.assert_allclose([x[0], x[-1]], np.quantile(X[:, 2], [0.005, 0.995]))


def test_a_line_without_rows_is_drawn_over_differences():
    shown = TermsDisplay([line("year", -0.5, 3.0, knot=2000.0)]).plot()
    x, y = drawn(shown.axes_[0])
    assert x[0] == -12 and x[-1] == 12
    np.testing.assert_allclose(y, -0.5 * x, atol=1e-12)
    labels = [label.get_text() for label in shown.axes_[0].get_xticklabels()]
    assert labels == ["\u221210", "0", "+10"]
    assert not shown.axes_[0].patches and len(shown.axes_[0].collections) == 1  # no rows, no knots
    flat = TermsDisplay([line("a", 1, 1.0), line("b", 0, 0.0)]).plot()
    np.testing.assert_array_equal(drawn(flat.axes_[1])[1], 0)


def test_a_ranker_that_adds_nothing_gets_a_sentence():
    shown = TermsDisplay([line("a", 0.0, 0.0), line("b", 0.0, 0.0)]).plot()
    assert shown.axes_.size == 0
    assert any("ranks nothing" in text.get_text() for text in written(shown.figure_))
    assert_readable(shown.figure_)


@pytest.mark.parametrize(
    ("n_columns", "grid"),
    [(1, (1, 1)), slow(2, (1, 2)), (4, (2, 2)), (10, (4, 3)), slow(300, (10, 4))],
)
def test_any_number_of_panels_can_be_read(n_columns, grid):
    curves = CURVES
    if n_columns == 300:  # of fewer that there are
        curves = [curve(f"column_with_a_long_name_{j}", X[:, j % 10]) for j in range(37)]
    shown = TermsDisplay(curves).plot(n_columns=n_columns)
    assert shown.axes_.size == min(n_columns, len(curves))
    assert shown.axes_[0].get_gridspec().get_geometry() == grid
    assert_readable(shown.figure_)


@pytest.mark.parametrize("layout", [None, slow("constrained")])
def test_panels_take_the_place_of_given_axes(layout):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 6), layout=layout)
    left.plot([1, 2])
    shown = TermsDisplay(CURVES, X).plot(right)
    assert shown.figure_ is figure and not right.axison
    figure.canvas.draw()
    assert all(axes.get_window_extent().x0 > left.get_window_extent().x1 for axes in shown.axes_)
    assert_readable(figure)


def test_names_are_drawn_to_the_letter_or_shortened_in_their_middle():
    shown = TermsDisplay(CURVES).plot()
    titles = [axes.title for axes in shown.axes_]
    lefts = [axes._left_title for axes in shown.axes_]
    drawn_names = [text._preprocess_math(text.get_text()) for text in lefts]
    assert not any(is_formula for _, is_formula in drawn_names)
    names = [name.strip() for name, _ in drawn_names]
    assert "a$b^$c" in names and "_hidden" in names and len(titles) == len(names)
    (long,) = [name for name in names if name.startswith("WW")]
    assert "\u2026" in long and long.endswith("W") and len(long) < 30


def test_levels_are_bars_with_their_names_on_the_scale_of_the_curves():
    kind = Levels("kind", 1, ("flat", "hostel", "hotel"), np.array([0.5, -1.0, 0.2]), 1.0, gap=-2.0)
    frame = pd.DataFrame({"age": X[:6, 0], "kind": ["hotel", "hotel", "flat", None, "new", "flat"]})
    shown = TermsDisplay([curve("age", X[:, 0], 2.0), kind], frame).plot()
    age, bars_of_kind = shown.axes_
    assert age.get_ylim() == bars_of_kind.get_ylim()
    names, heights = level_bars(bars_of_kind)
    assert names == ["flat", "hotel", "hostel", "missing"]
    mean = (2 * 0.2 + 2 * 0.5) / 5  # "new" adds 0, and the missing value is not counted
    np.testing.assert_allclose(heights, np.array([0.5, 0.2, -1.0, -2.0]) - mean)
    low, high = age.get_ylim()
    assert low < -2.0 - mean and high > 0.5 - mean
    without = TermsDisplay([kind]).plot()
    np.testing.assert_allclose(
        level_bars(without.axes_[0])[1], np.array([0.5, 0.2, -1.0, -2.0]) + 0.1
    )
    assert_readable(shown.figure_)
    assert_readable(without.figure_)


def test_of_many_levels_those_of_most_rows_are_shown_else_the_largest():
    levels = tuple(f"town{i:02}" for i in range(60))
    weights = np.where(np.arange(60) == 7, -9.0, np.arange(60) / 60)
    towns = Levels("town", 0, levels, weights, 1.0)
    rows = pd.DataFrame({"town": ["town03"] * 5 + ["town30"] * 3 + ["town59"] * 2 + ["town07"]})
    for X_given, seen in ((rows, {"town03", "town30", "town59", "town07"}), (None, {"town07"})):
        shown = TermsDisplay([towns], X_given).plot()
        names, heights = level_bars(shown.axes_[0])
        assert set(names) >= seen and (np.diff(heights) <= 0).all()
        assert f"+{60 - len(names)} others" == tick_names(shown.axes_[0])[-1]
        assert_readable(shown.figure_)
    few = TermsDisplay([towns] * 9, rows).plot()
    names, _ = level_bars(few.axes_[0])
    assert len(names) == 8 and {"town03", "town30", "town59", "town07", "town58"} <= set(names)


def test_a_missing_value_has_a_bar_beside_the_curve():
    holes = np.where(np.arange(500) < 50, np.nan, X[:, 0])[:, None]
    with_gap = curve("age", X[:, 0], gap=-3.0)
    shown = TermsDisplay([with_gap], holes).plot()
    mean = with_gap(holes[50:, 0]).mean()
    names, heights = level_bars(shown.axes_[0])
    assert names == ["missing"]
    np.testing.assert_allclose(heights, [-3.0 - mean])
    x, _ = drawn(shown.axes_[0])
    right_end = shown.axes_[0].transData.transform([x[-1], 0])[0]
    bar = shown.axes_[0].transData.transform(gap_bar(shown.axes_[0])[1])[0]
    assert right_end < bar and shown.axes_[0].get_ylim()[0] < -3.0 - mean
    lowest = TermsDisplay([with_gap], holes, missing="lowest").plot()
    np.testing.assert_allclose(level_bars(lowest.axes_[0])[1], [-3.0])
    assert "lowest\u00a0value" in "".join(text.get_text() for text in written(lowest.figure_))
    # of a line without rows nobody knows where on it a missing value is
    unknown = TermsDisplay([line("year", 1.0, 1.0, gap=500.0)]).plot()
    assert not level_bars(unknown.axes_[0])[0] and unknown.axes_[0].get_ylim()[1] < 3
    for each in (shown, lowest, unknown):
        assert_readable(each.figure_)


STARS = Cut(np.array([2.0, 3.0, 4.0]), 4)
KINDS = Cut(None, 3, ("flat", "hostel", "hotel"))


def stars_and_kind(gap=0.0, deviation=3.0):
    weights = np.zeros((5, 4))
    weights[:4, :3] = np.outer([-1, 0, 0, 1], [1, 0, -1])
    weights[4, :3] = gap
    return Pair(("stars", "kind"), (0, 1), (STARS, KINDS), weights, deviation)


def test_two_columns_are_a_map_with_a_scale_of_its_own():
    singles = [
        Curve("stars", 0, np.array([1.0, 5.0]), np.array([0.0, 0.1]), 0.0, 1.0),
        Levels("kind", 1, KINDS.names, np.array([0.1, 0.0, 0.0]), 2.0),
    ]
    shown = TermsDisplay([*singles, stars_and_kind()]).plot()
    assert [axes.get_title("left") for axes in shown.axes_] == ["stars x kind", "kind", "stars"]
    assert shown.axes_[0].get_title("right") == "50%"
    (area,) = shown.figure_.subfigs
    assert "on top of both columns" in area.get_supxlabel().replace("\u00a0", " ")
    map_ = shown.axes_[0]
    (mesh,) = map_.collections
    bar = mesh.colorbar.ax
    # names go up, numbers to the right: row i is of the kind i, column j of the stars j
    np.testing.assert_allclose(
        mesh.get_array().reshape(3, 4), stars_and_kind().weights[:4, :3].T, atol=1e-12
    )
    assert mesh.get_clim() == (-1.0, 1.0)
    assert [label.get_text() for label in map_.get_yticklabels()] == list(KINDS.names)
    assert [label.get_text() for label in bar.get_yticklabels()] == ["\u22121", "0", "+1"]
    assert (map_.get_xlabel(), map_.get_ylabel()) == ("stars", "kind")
    assert shown.axes_[1].get_ylim()[1] < 0.2  # the scale of the others is theirs
    first = shown.axes_[1].get_subplotspec()
    assert first.is_first_col()  # where the labels of that scale are
    assert_readable(shown.figure_)

    rows = pd.DataFrame({"stars": [1.0, 5.0, 5.0], "kind": ["hotel", "flat", "new"]})
    of_rows = TermsDisplay([stars_and_kind()], rows).plot()
    (mesh,) = of_rows.axes_[0].collections
    np.testing.assert_allclose(
        mesh.get_array().reshape(3, 4), stars_and_kind().weights[:4, :3].T - 2 / 3, atol=1e-12
    )
    with_gap = TermsDisplay([stars_and_kind(gap=0.4)]).plot().axes_[0]
    assert with_gap.collections[0].get_array().size == 15
    labels = [label.get_text() for label in with_gap.get_xticklabels()]
    assert labels == ["2", "3", "4", "missing"]


def test_many_maps_of_many_levels_can_be_read():
    names = tuple(f"a town with a long name {i}" for i in range(50))
    weights = RNG.normal(size=(51, 5))
    weights[-1] = 0
    weights[7, :4] = 50
    towns = Pair(("town", "stars"), (1, 0), (Cut(None, 50, names), STARS), weights, 1.0)
    both = Pair(("kind", "town"), (2, 1), (KINDS, Cut(None, 50, names)), np.ones((4, 51)), 1.0)
    square = Pair(("a", "b"), (0, 1), (Cut(None, 15, names[:15]),) * 2, np.ones((16, 16)), 1.0)
    for pairs in ([towns], [square] * 3, [towns, both, stars_and_kind()]):
        shown = TermsDisplay(pairs).plot()
        assert_readable(shown.figure_)
    map_ = shown.axes_[np.flatnonzero(["town x" in a.get_title("left") for a in shown.axes_])[0]]
    assert map_.get_ylabel().startswith("town (") and "of 50)" in map_.get_ylabel()
    assert any("7" in label.get_text() for label in map_.get_yticklabels())


def test_edges_of_maps_stand_apart():
    km = Cut(np.array([0.45, 1.15, 2.05, 3.15, 5.25]), 6)
    kinds = ("apartment", "bed and breakfast with a long name", "hostel", "hotel", "resort")
    weights = np.pad(RNG.normal(size=(5, 6)), (0, 1))
    pairs = [
        Pair((name, "km"), (0, 1), (Cut(None, 5, kinds), km), weights, 1.0)
        for name in ("kind", "offer", "town")
    ]
    bars = [Levels(name, 0, kinds, RNG.normal(size=5), 0.5) for name in ("kind", "offer", "town")]
    shown = TermsDisplay([*bars, *pairs]).plot()
    assert_readable(shown.figure_)
    (map_,) = (axes for axes in shown.axes_ if axes.get_title("left") == "kind x km")
    boxes = [label.get_window_extent() for label in map_.get_xticklabels()]
    digit = 0.6 * 7.5 / 72 * shown.figure_.dpi
    assert all(right.x0 - left.x1 > digit for left, right in pairwise(boxes))


def test_of_a_ranker():
    frame = pd.DataFrame(X, columns=list(COLUMNS))
    ranker = Ranker().fit(frame)
    shown = TermsDisplay.from_estimator(ranker, frame, n_columns=4)
    assert shown.axes_.size == 4 and shown.terms == tuple(CURVES)
    np.testing.assert_array_equal(shown.X, X)
    assert TermsDisplay.from_estimator(ranker, n_columns=1).X is None
    holes = frame.mask(frame == 7.0)
    with pytest.raises(InputError, match=r"NaN at row 0, column 'constant'"):
        TermsDisplay.from_estimator(ranker, holes)
    ranker.missing = "lowest"
    shown = TermsDisplay.from_estimator(ranker, holes, n_columns=4)
    assert shown.axes_[3].get_title("left") == "constant" and not shown.axes_[3].patches  # no row
    with pytest.raises(InputError, match="feature names"):
        TermsDisplay.from_estimator(ranker, frame[frame.columns[::-1]])
    with pytest.raises(NotFittedError):
        TermsDisplay.from_estimator(Ranker())
    logistic = LogisticRegression().fit(X[:, :2], X[:, 1] > 0)
    with pytest.raises(InputError, match="LogisticRegression has no terms: give a PAPKRanker"):
        TermsDisplay.from_estimator(logistic)


def test_of_a_table_with_text_by_a_ranker_and_its_model():
    frame = pd.DataFrame(
        {
            "age": np.where(np.arange(120) % 9 == 0, np.nan, X[:120, 0]),
            "kind": np.array(["flat", "hotel", "hostel", None], dtype=object)[np.arange(120) % 4],
            "pool": np.arange(120) % 7 < 3,
        }
    )
    y = (X[:120, 0] > 40) | (frame["kind"] == "hotel")
    ranker = PAPKRanker(k=2, curves=4, pairs=None).fit(frame, y, np.repeat(np.arange(6), 20))
    shown = TermsDisplay.from_estimator(ranker, frame)
    panels = {axes.get_title("left"): axes for axes in shown.axes_}
    assert set(level_bars(panels["kind"])[0]) == {"flat", "hotel", "hostel", "missing"}
    assert level_bars(panels["kind"])[0][0] == "hotel"
    assert set(level_bars(panels["pool"])[0]) == {"True", "False"}
    assert level_bars(panels["age"])[0] == ["missing"]
    assert_readable(shown.figure_)
    model = ranker.to_model()
    others = (
        TermsDisplay.from_estimator(model, frame[["pool", "age", "kind"]]),  # columns by name
        TermsDisplay.from_estimator(ranker, pl.from_pandas(frame)),
        TermsDisplay(ranker.terms_, frame).plot(),
        TermsDisplay(ranker.terms_[1:], frame).plot(),
    )
    for other in others:
        for axes in other.axes_:
            same = panels[axes.get_title("left")]
            assert level_bars(axes) == level_bars(same)
    with pytest.raises(InputError, match="column 'kind' holds numbers"):
        TermsDisplay(ranker.terms_, frame.assign(kind=1.5))


def test_wrong_input_is_refused(monkeypatch):
    for broken in (
        Curve("a", 0, np.array([0.0, np.inf]), np.zeros(2), 0.0, 1.0),
        Curve("a", 0, np.array([0.0, 1.0]), np.array([0, np.nan]), 0.0, 1.0),
        line("a", np.inf, 1.0),
        line("a", 1.0, np.nan),
        line("a", 1.0, 1.0, gap=np.inf),
        Levels("a", 0, ("x", "y"), np.array([0.0, np.nan]), 1.0),
    ):
        with pytest.raises(InputError, match="column a holds NaN or infinite"):
            TermsDisplay([broken])
    with pytest.raises(InputError, match="no terms"):
        TermsDisplay([])
    with pytest.raises(TypeError, match="each of terms must be a Term"):
        TermsDisplay([[0, 1]])
    with pytest.raises(InputError, match="X has 1 columns, but the terms are of 2"):
        TermsDisplay(CURVES[:2], X[:, :1])
    with pytest.raises(InputError, match="inf at row 3"):
        TermsDisplay(CURVES[:1], np.where(np.arange(500) == 3, np.inf, 0.0)[:, None])
    with pytest.raises(InputError, match="n_columns must be a whole number"):
        TermsDisplay(CURVES).plot(n_columns=0)
    with pytest.raises(InputError, match=r"plt\.subplots"):
        TermsDisplay(CURVES).plot(pyplot.figure().add_axes([0, 0, 1, 1]))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InputError, match=r"structsvm-papk\[plot\]"):
        TermsDisplay(CURVES).plot()


def test_a_figure_apart_from_pyplot():
    figure = terms_figure(CURVES[:2], X[:, :2])
    assert not pyplot.get_fignums()
    assert_readable(figure)
