"""Which list a row belongs to, and what each user weighs.

Groups are asked for, and one list only where it is said.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.errors import InputError, as_floats

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


def checked_weight(given: Any, users: Array, n_pos: Array) -> Array | None:
    """Weights as an array, or None where all users weigh the same."""
    if given is None or (isinstance(given, str) and given == "equal"):
        return None
    if isinstance(given, str):
        if given != "positives":
            raise InputError(
                f"unknown user_weight {given!r}; choose 'equal', 'positives' or numbers"
            )
        return n_pos.astype(np.float64)
    weight = as_floats("user_weight, where it is not 'equal' or 'positives',", given)
    if weight.shape != (users.size,):
        raise InputError(f"user_weight has shape {weight.shape}, but there are {users.size} users")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight > 0.0)))
    if bad.size:
        user = users[bad[:1]].tolist()[0]
        raise InputError(
            f"the weight of user {user!r} is {weight[bad[0]]:g}; weights must be finite and "
            "above zero (leave users out by leaving out their rows)"
        )
    return weight


def laid_out(positive: Array, user_of_row: Array, n_users: int) -> tuple[Array, Array, Array]:
    """`rows`, `indptr` and `n_pos`: one stable integer sort by user, positives first."""
    sizes = np.bincount(user_of_row, minlength=n_users)
    return (
        np.argsort(2 * user_of_row + ~positive, kind="stable"),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.bincount(user_of_row[positive], minlength=n_users),
    )


def encode_groups(groups: Any, n_rows: int) -> tuple[Array, Array]:
    """Users, and the user of each row as their index; without groups a single one."""
    if groups is None:
        return np.zeros(1, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    return validation.encode(validation.check_ids(groups, n_rows))
