"""The rules named on the page of conformance give each library's number."""

import conformance
import numpy as np
import pytest

pytestmark = pytest.mark.stress

UNREPRODUCED = ("auc (ranking)",)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "library",
    ["scikit-learn", "rectools", "ranx", "torchmetrics", "xgboost", "lightgbm", "catboost"],
)
def test_the_named_rules_give_the_librarys_number(library):
    data = conformance.ranking(ties=False)
    rows, missing = conformance.collected(data, [library])
    if missing:
        pytest.skip(f"{library} is not installed")
    assert rows
    tolerance = 1e-7 if library == "torchmetrics" else 1e-12
    for row in rows:
        if not row.call.startswith(UNREPRODUCED):
            assert conformance.ours(data, row) == pytest.approx(row.value, abs=tolerance), row.call


@pytest.mark.filterwarnings("ignore")
def test_xgboosts_ranking_auc_depends_on_the_order_of_rows():
    pytest.importorskip("xgboost")
    rows, _ = conformance.collected(conformance.ranking(ties=False), ["xgboost"])
    one, two = (row.value for row in rows if row.call.startswith("auc"))
    assert not np.isclose(one, two)


@pytest.mark.filterwarnings("ignore")
def test_page_names_missing_libraries(monkeypatch):
    def absent(_):
        raise ImportError

    monkeypatch.setattr(
        conformance, "LIBRARIES", {"scikit-learn": conformance.scikit_learn, "ranx": absent}
    )
    monkeypatch.setattr(conformance, "collected", _tied_too(conformance.collected))
    text = "\n".join(conformance.page())
    assert "left out: ranx" in text
    assert "| < 1e-12 |" in text
    assert "**" not in text


def _tied_too(collected):
    return lambda data, names: collected(data, [n for n in names if n in ("scikit-learn", "ranx")])
