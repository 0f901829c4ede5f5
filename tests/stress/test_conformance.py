"""The rules named on the page of conformance give each library's number."""

import conformance
import numpy as np
import pytest

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.stress]

UNREPRODUCED = ("auc (ranking)",)


@pytest.mark.parametrize("library", conformance.LIBRARIES)
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


def test_xgboosts_ranking_auc_depends_on_the_order_of_rows():
    pytest.importorskip("xgboost")
    rows, _ = conformance.collected(conformance.ranking(ties=False), ["XGBoost"])
    one, two = (row.value for row in rows if row.call.startswith("auc"))
    assert not np.isclose(one, two)


def test_page_names_missing_libraries(monkeypatch):
    def absent(_):
        raise ImportError

    libraries = dict.fromkeys(conformance.LIBRARIES, absent)
    libraries["scikit-learn"] = conformance.scikit_learn
    monkeypatch.setattr(conformance, "LIBRARIES", libraries)
    text = "\n".join(conformance.page())
    assert "left out: RecTools, ranx" in text and "| < 1e-12 |" in text and "**" not in text
