"""What recommended lists are like beside being right: how rare their items are, how many differ.

Neither needs to know which items are relevant. Definitions of RecTools (`MeanInvUserFreq`, and
`CatalogCoverage` as a share).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import parsing

if TYPE_CHECKING:
    from structsvm_papk.metrics.table import MetricTable

_NAME = re.compile(r"\s*(novelty|coverage)\s*(?:@\s*([+-]?\w+))?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ItemMetric:
    """A metric of the items that stand on the first k places."""

    name: str
    kind: str
    k: int


def parse(name: str) -> ItemMetric | None:
    """The metric of a name; None where it is none of this module."""
    match = _NAME.fullmatch(str(name))
    if match is None:
        return None
    kind = match[1].lower()
    if match[2] is None:
        raise InputError(f"metric {name!r} needs a cut-off, for example {kind}@10")
    return ItemMetric(name, kind, parsing.cutoff(name, match[2]))


def rarity(items: Array, users: Array, n_values: int) -> Array:
    """``-log2(users who had the item / users)`` by item code, from pairs (item, user) of codes.

    An item that nobody had counts as one user's.
    """
    pairs = np.unique(np.stack([items, users]), axis=1)
    count = np.bincount(pairs[0], minlength=n_values)
    return -np.log2(np.maximum(count, 1) / np.unique(users).size)


def with_item_metrics(
    table: MetricTable,
    order: Sequence[str],
    wanted: Sequence[ItemMetric],
    shown: tuple[Array, Array, Array],
    rareness: Array | None,
    catalog_size: int | None,
) -> MetricTable:
    """The table with these metrics, in the given order.

    `shown`: place of the user in the table, code and rank of each recommended item.
    """
    columns, pooled = {name: table[name] for name in table.metrics}, dict(table.pooled)
    left_out = {name: ~table.used(name) for name in table.metrics}
    users, items, ranks = shown
    for metric in wanted:
        top = ranks <= metric.k
        count = np.bincount(users[top], minlength=table.users.size)
        if metric.kind == "novelty":
            if rareness is None:
                raise InputError(f"{metric.name} needs previous=, the interactions so far")
            total = np.bincount(users[top], rareness[items[top]], table.users.size)
            values = np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0)
        else:
            if catalog_size is None:
                raise InputError(f"{metric.name} needs catalog=, the items that can be recommended")
            pooled[metric.name] = np.unique(items[top]).size / catalog_size
            values = count / catalog_size
        columns[metric.name], left_out[metric.name] = values, np.isnan(values)
    return replace(
        table,
        metrics=tuple(order),
        values=np.stack([columns[name] for name in order], axis=1),
        left_out=np.stack([left_out[name] for name in order], axis=1),
        touched={name: table.touched.get(name, {}) for name in order},
        pooled=pooled,
    )
