"""Which list a row belongs to: groups are asked for, and one list only where it is said."""

from __future__ import annotations

from typing import Any

from structsvm_papk.errors import InputError

ONE_LIST = "one_list"
_ROUTING = "sklearn.set_config(enable_metadata_routing=True)"
_BY_ESTIMATOR = (
    "cross_val_score(ranker, X, y, params={'groups': users}, cv=GroupKFold(5))"
    "  # or search.fit(X, y, groups=users)"
)
_BY_SCORER = "scorer.set_score_request(groups=True)  # and hand groups=users to the tool"


def required(groups: Any, scorer: bool = False) -> Any:
    """The groups of the rows, or None for one list, which has to be asked for by 'one_list'.

    `scorer`: whether a scorer asks, which does not request groups by itself.
    """
    if groups is None:
        raise InputError(
            "groups= is missing: give the user of each row, or groups='one_list' if all rows are "
            "one list. scikit-learn's cross-validation hands groups to the splitter only, unless "
            f"you enable metadata routing:\n    {_ROUTING}\n"
            f"    {_BY_SCORER if scorer else _BY_ESTIMATOR}"
        )
    return one_list_or(groups)


def one_list_or(groups: Any) -> Any:
    """The groups of the rows, None for 'one_list'."""
    if not isinstance(groups, str):
        return groups
    if groups != ONE_LIST:
        raise InputError(
            f"groups={groups!r}: give an array with the user of each row, or 'one_list'"
        )
    return None
