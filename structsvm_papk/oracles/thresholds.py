"""Sizes from which solves of a risk take shortcuts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """From which sizes on shortcuts pay.

    They change how long the solve of a convex risk takes, not what it finds; of others, where CCCP
    starts.

    Attributes
    ----------
    sample_rows : int
        Rows from which steps are taken from a sample of the users; below, a solve is too short.
    sample_every : int
        One user of so many is in that sample, or more of them.
    sample_users_per_feature : int
        Users that the sample has for each feature, at the least.
    sample_bytes : int
        About how large the features of a sample are that comes from a cluster; four times as large
        ones are not fetched.
    start_rows, start_rows_per_feature : int
        Rows, and rows for each feature, that are enough for a starting point of CCCP; those of
        every n-th user are taken where there are more.
    ascent_features, ascent_users : int
        Features and users from which the ascent on the dual was faster with sparse data, see
        docs/benchmarks.md.
    """

    sample_rows: int = 100_000
    sample_every: int = 20
    sample_users_per_feature: int = 5
    sample_bytes: int = 1 << 28
    start_rows: int = 1 << 14
    start_rows_per_feature: int = 300
    ascent_features: int = 1000
    ascent_users: int = 20

    def sample_step(
        self, n_users: int, n_rows: int, n_features: int, step: float | None = None
    ) -> int | None:
        """The n for which every n-th user is a sample that helps; None where none does.

        It is `step`, by default `sample_every`, or less where features would have too few users.
        """
        most = n_users // (self.sample_users_per_feature * n_features)
        if n_rows < self.sample_rows or most < self.sample_every:
            return None
        return int(min(self.sample_every if step is None else step, most))

    def start_step(self, n_rows: int, n_features: int) -> int:
        """The n for which every n-th user is enough for a starting point."""
        enough = max(self.start_rows, self.start_rows_per_feature * n_features)
        return max(1, n_rows // enough)


DEFAULTS = Thresholds()
