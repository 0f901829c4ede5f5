"""`UserScaler`: columns scaled inside each list, as a step of a pipeline with another ranker."""

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from structsvm_papk._types import Array
from structsvm_papk.data.user_scaling import check_user_scaling, scaled_rows
from structsvm_papk.rankers.linear import validated


class UserScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale every column inside each user's list, as `PAPKRanker(user_scaling=..)` does.

    For a pipeline with another ranker: with ``sklearn.set_config(enable_metadata_routing=True)``
    the pipeline's `fit` and `predict` hand `groups` on. Nothing is learned from the data.

    Parameters
    ----------
    user_scaling : {'standardize', 'rank', 'minmax', None}
        ``(x - mean_u) / deviation_u``; or ``(rank_u - (n_u + 1) / 2) / n_u``, tied values with
        their mean rank; or ``(x - min_u) / (max_u - min_u)``, what search engines apply; or None:
        as they are. A column that is constant in a list becomes 0 there.

    Examples
    --------
    >>> UserScaler("rank").fit_transform([[10.0], [30.0], [20.0], [0.1]], groups=[1, 1, 1, 2])
    array([[-0.33333333],
           [ 0.33333333],
           [ 0.        ],
           [ 0.        ]])
    """

    __metadata_request__transform: ClassVar = {"groups": True}

    def __init__(self, user_scaling: str | None = "standardize") -> None:
        self.user_scaling = user_scaling

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the setting and count the columns."""
        check_user_scaling(self.user_scaling)
        validated(self, X)
        return self

    def transform(self, X: ArrayLike, groups: ArrayLike | None = None) -> Array:
        """The scaled columns; `groups` holds the user of each row, or is 'one_list'.

        Raises
        ------
        InputError
            No groups, values that are not finite numbers, or X is sparse.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return scaled_rows(X, groups, check_user_scaling(self.user_scaling))

    def fit_transform(self, X: ArrayLike, y: Any = None, groups: Any = None) -> Array:
        """`fit`, then `transform`."""
        return self.fit(X).transform(X, groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags._skip_test = True  # the checks have no groups to give
        return tags
