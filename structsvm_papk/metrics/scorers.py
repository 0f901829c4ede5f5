"""The metrics as functions that scikit-learn's `make_scorer` takes."""

from typing import Any

from numpy.typing import ArrayLike

from structsvm_papk.data.groups import required
from structsvm_papk.metrics.table import check_options, evaluate


def mean_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    metric: str = "pap@10",
    **options: Any,
) -> float:
    """Mean of a metric over users; larger is better.

    With metadata routing::

        scorer = make_scorer(mean_score, response_method="decision_function", metric="pap@5")
        scorer.set_score_request(groups=True)

    Parameters
    ----------
    y_true, y_score : array-like, shape (n_rows,)
    groups : array-like of shape (n_rows,) or 'one_list'
        User of each row; 'one_list' says that all rows are one list.
    metric : str
    **options
        Of `evaluate`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        No groups, as when scikit-learn does not pass them on, or arguments that `evaluate` refuses.
    """
    check_options(mean_score, options)
    groups = required(groups, scorer=True)
    return evaluate([metric], y_score, y_true, groups, **options).mean(metric)
