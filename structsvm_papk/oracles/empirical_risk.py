"""The empirical risk of a linear scorer: the oracle that every solver can ask."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from structsvm_papk._types import Array
from structsvm_papk.oracles.boxes import Boxes
from structsvm_papk.oracles.convex_risk import ConvexRisk, MajorantRisk
from structsvm_papk.oracles.starts import enough_for_starts, warm_starts
from structsvm_papk.oracles.ties import Ties, ways_to_break
from structsvm_papk.solvers.oracle import BoxedOracle


class EmpiricalRisk(ConvexRisk, BoxedOracle):
    """Mean over users of a surrogate of their lists, ``R(w) = sum_u v_u S(X_u w) / sum_u v_u``.

    The weights v are those of the data, by default all the same.

    Calling it with w gives the value and a subgradient; `blocks` gives them for each block of
    users, for solvers that take several cuts from one pass over the data.

    Where the surrogate is `majorised` and `boxed`, as Ramp and ClippedRamp are, there are majorants
    and bounds over boxes too; others refuse.

    Where the surrogate is `shift_invariant` and columns have large offsets, rows are read as their
    differences to the user's first row (`data.features`): scores and subgradients differ from
    ``X @ w`` and its like by what does not count.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
    policy : {'exclude', 'raise', 'cap'}
        What to do with users without a positive or with fewer negatives than the surrogate's depth
        (k, where it has none): leave them out, refuse them, or count the negatives that they have;
        users without a positive or a negative are always left out.
    n_blocks : int
        Number of blocks of consecutive users with about the same number of rows (one for each
        user, if there are fewer).
    n_threads : int
        Threads that share the work. The result does not depend on it.
    skip_rows : bool
        Whether solvers may leave out rows that provably do not count, see
        `structsvm_papk.oracles.short_lists`. Values and cuts are the same to rounding.

    Attributes
    ----------
    data : RankingData
        The users that are used.
    exclusions : Exclusions
        The users that were left out, and why.
    rows_scored : int
        Rows scored so far.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'.
    """

    def majorant(self, w: Array) -> MajorantRisk:
        """A convex risk that is nowhere below this one, and tight at w.

        Raises
        ------
        InputError
            A surrogate without majorants.
        """
        data = self.data
        return MajorantRisk(self.surrogate.majorant(self.scores(w), data.indptr, data.n_pos), self)

    def tied_majorants(self, w: Array, alpha: float, limit: int) -> Iterator[MajorantRisk]:
        """Majorants at w with ties broken otherwise, as an iterator; see `oracles.ties`."""
        ties = Ties(self, w)
        for v in ways_to_break(ties.look, w, alpha, limit):
            yield MajorantRisk(ties.majorant(v), self)

    def bounds(self, alpha: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Bounds over boxes, see `Boxes.bounds`."""
        return self._boxes.bounds(alpha, low, high)

    @cached_property
    def _boxes(self) -> Boxes:
        return Boxes(self)

    def starts(self, alpha: float, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Starting points by name for solvers of non-convex risks; see `starts.warm_starts`."""
        data = self.data.every_nth(enough_for_starts(self.data.rows.size, self.n_features))
        return warm_starts(self.surrogate, data, alpha, names, self.n_threads)
