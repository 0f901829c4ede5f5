"""Arguments that do not exist end in a sentence; values of those that do: test_arguments."""

import numpy as np
import pytest

from structsvm_papk import metrics, plots
from structsvm_papk.errors import InputError

pytest.importorskip("matplotlib").use("Agg")

N = 60
SCORES, LABELS = np.arange(float(N))[::-1] % 7, np.tile([1, 0, 0], N // 3)
USERS, ITEMS = np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)
TABLE = metrics.evaluate(["pap@1", "auc"], SCORES, LABELS, USERS)
FRAME = {
    "user_id": USERS, "item_id": ITEMS, "score": SCORES, "label": LABELS, "rank": ITEMS + 1
}  # fmt: skip
ROWS = {"scores": SCORES, "labels": LABELS, "groups": USERS}
PICTURE = {"y_true": LABELS, "y_score": SCORES, "groups": USERS}
CALLS = {
    metrics.evaluate: {"metrics": "pap@1", **ROWS},
    metrics.per_user: {"name": "pap@1", **ROWS},
    metrics.pap_at_k: {"k": 1, **ROWS},
    metrics.mean_score: PICTURE,
    metrics.compare: {"first": TABLE, "second": TABLE},
    metrics.interval: {"table": TABLE, "metric": "auc"},
    metrics.evaluate_frame: {"frame": FRAME, "metrics": "pap@1"},
    metrics.evaluate_recommendations: {
        "recommendations": FRAME, "interactions": FRAME, "metrics": "pap@1"
    },
    plots.PAPDisplay.from_predictions: {"ks": [1, 2], "n_resamples": 9, **PICTURE},
    plots.SegmentDisplay.from_predictions: {
        "segments": {"a": USERS}, "metric": "auc", "n_resamples": 9, **PICTURE
    },
    plots.RankStripDisplay.from_predictions: PICTURE,
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__qualname__)
@pytest.mark.parametrize("name", ["group", "labell"])
def test_an_argument_that_does_not_exist(call, name):
    with pytest.raises(TypeError, match=f"unexpected.*{name}|has no argument '{name}'; it takes"):
        call(**CALLS[call], **{name: 1})


def test_what_the_caller_sets_is_no_option():
    with pytest.raises(TypeError, match="evaluate_frame has no argument 'segments'"):
        metrics.evaluate_frame(FRAME, "pap@1", segments={"a": USERS})
    with pytest.raises(TypeError, match="evaluate_recommendations has no argument 'indptr'"):
        metrics.evaluate_recommendations(FRAME, FRAME, "pap@1", indptr=[0, 60])


def test_one_list_may_be_said():
    said = metrics.evaluate("auc", SCORES, LABELS, "one_list")
    assert said.values == metrics.evaluate("auc", SCORES, LABELS).values
    with pytest.raises(InputError, match="give an array with the user of each row, or 'one_list'"):
        metrics.evaluate("auc", SCORES, LABELS, "one list")
