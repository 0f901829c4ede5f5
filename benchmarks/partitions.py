"""Data in partitions: rounds, bytes and seconds of the bundle, of the ascent, and of CoCoA+.

    python benchmarks/partitions.py [--tasks sparse large dense] [--only WAY] [--dask] [--json FILE]

Two partitions in this process, one thread, processor seconds; bytes are those of all arrays that go
to the partitions or come back. Every way is stopped after `--limit` seconds. With `--dask` the
partitions are on two worker processes instead, and seconds are those of a clock.

CoCoA+ (Ma et al., 2015) is the other way to spread the ascent, and is written out here: in a round
every partition improves its own users' dual variables against the common w, and sends the change of
w. `sum` adds the changes, for which each partition takes its own quadratic term times the number of
partitions; `search` takes it as it is, and the step by exact line search on the dual. `in turn` is
the ascent out of core that keeps nothing in memory: one partition after the other, each at the w
that the one before has left.
"""

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from cluster import rows
from scipy import sparse
from sparse import generated

from structsvm_papk import CuttingPlane, DualAscent, RankingData, make_surrogate
from structsvm_papk.data.partitions import array_partitions
from structsvm_papk.oracles.dual_choice import blocks_of
from structsvm_papk.oracles.list_risk import ListRisk, users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk, summarise

TOLS = (1e-2, 1e-3, 1e-6)
N_PARTITIONS = 2
WAYS = ("bundle", "ascent", "CoCoA+, sum", "CoCoA+, search", "CoCoA+, in turn")
TASKS = {  # rows, features, users, surrogate, k, alpha
    "sparse": (200_000, 50_000, 400, "avg", 5, 1e-2),
    "large": (1_000_000, 100_000, 2000, "avg", 5, 1e-2),
    "dense": (600_000, 100, 1200, "ts", 10, 1e-3),
}


class Here:
    """Partitions in this process, with what would go over a wire."""

    notes = ()

    def __init__(self, partitions, surrogate):
        *needed, _ = users_needed(surrogate, "exclude")
        self.data, self.summaries = zip(
            *(summarise(each.load(), *needed) for each in partitions), strict=True
        )
        self.memories = [{} for _ in self.data]
        self.bytes = self.rounds = 0

    def run(self, task, shares):
        self.rounds += 1
        for data, share, memory in zip(self.data, shares, self.memories, strict=True):
            answer = task(data, share, 1, memory)
            self.bytes += size(list(task.keywords.values())) + size(share) + size(answer)
            yield answer


def size(values):
    """Bytes of all arrays in there."""
    if isinstance(values, list | tuple):
        return sum(map(size, values))
    if sparse.issparse(values):
        return size([values.data, values.indices, values.indptr])
    return values.nbytes if isinstance(values, np.ndarray) else 0


def certified(solver, risk, clock, limit):
    """When each gap was reached, in one run."""
    start, points, parts = clock(), {}, risk.parts

    def callback(progress):
        note(points, progress.gap, clock() - start, progress.data_passes, parts)
        return clock() - start > limit

    result = solver.solve(risk, callback=callback)
    note(points, result.gap, clock() - start, result.data_passes, parts)
    return {"points": points, "last": last(result.gap, clock() - start, result.data_passes, parts)}


def note(points, gap, seconds, rounds, parts):
    """Remember when a gap was first reached."""
    for tol in TOLS:
        if gap <= tol and f"{tol:g}" not in points:
            points[f"{tol:g}"] = last(gap, seconds, rounds, parts)


def last(gap, seconds, rounds, parts):
    """Where a run stands."""
    mb = parts.bytes / 1e6 if isinstance(parts, Here) else None
    return {"gap": gap, "seconds": seconds, "rounds": rounds, "MB": mb}


def cocoa(risk, alpha, limit, how):
    """CoCoA+ until the smallest tolerance or the limit.

    The gap is computed aside, for free, in the first ten rounds and in every tenth.
    """
    parts, d = risk.parts, risk.n_features
    shares = np.array([each.weight for each in parts.summaries])
    shares = shares / shares.sum()
    local = [
        blocks_of(ListRisk(risk.surrogate, data, "cap"), alpha / share)
        for data, share in zip(parts.data, shares, strict=True)
    ]
    scale = len(local) if how == "sum" else 1.0
    w, heights, points = np.zeros(d), 0.0, {}
    rng, spent, rounds, gap = np.random.default_rng(0), 0.0, 0, np.inf
    parts.bytes = 0
    while gap > TOLS[-1] and spent < limit:
        start, moves, before = process_time(), [], [blocks.duals for blocks in local]
        for blocks, share, old in zip(local, shares, before, strict=True):
            change = improved(blocks, w, scale * share / alpha, rng) / scale
            higher = share * float(blocks.share @ (blocks.duals.intercepts - old.intercepts))
            moves.append((change, higher))
            if how == "in turn":
                w, heights = w + change, heights + higher
        if how != "in turn":
            change, higher = (sum(each) for each in zip(*moves, strict=True))
            bend = alpha * (change @ change)
            step = 1.0 if how == "sum" else min(1.0, (higher - alpha * (w @ change)) / bend)
            w, heights = w + step * change, heights + step * higher
            for blocks, old in zip(local, before, strict=True):
                step_back(blocks, old, step)
        rounds, spent = rounds + 1, spent + process_time() - start
        parts.bytes += len(local) * 2 * w.nbytes
        if rounds > 10 and rounds % 10 and spent < limit:
            continue
        counted = parts.bytes
        objective = alpha / 2 * (w @ w) + risk(w)[0]
        parts.bytes = counted
        gap = (objective - heights + alpha / 2 * (w @ w)) / max(objective, 1e-3)
        note(points, gap, spent, rounds, parts)
    return {"points": points, "last": last(gap, spent, rounds, parts)}


def improved(blocks, w, step, rng):
    """The change of w by one look at all rows of a partition and some at the active ones."""
    blocks.w[:] = w
    blocks.lists = blocks.lists._replace(steps=step * blocks.share)
    order = rng.permutation(blocks.n_blocks)
    first = blocks.sweep(order, True)
    for _ in range(8):
        if blocks.sweep(order, False) <= 0.2 * first:
            break
    return blocks.w - w


def step_back(blocks, old, step):
    """Go only a part of the way from the old dual variables of Avg to the new ones."""
    if step == 1.0:
        return
    coef = (1.0 - step) * old.coef + step * blocks.duals.coef
    active, theta = blocks.active, blocks.atoms.theta
    for (first, _), n in zip(pairwise(active.at), active.used, strict=True):
        theta[first : first + n] = np.maximum(coef[active.positions[first : first + n]], 0.0)


def made(task):
    """Data, surrogate and alpha of a task."""
    n_rows, d, n_users, name, k, alpha = TASKS[task]
    if task == "dense":
        data = RankingData.from_groups(*rows(n_rows))
    else:
        data = generated(n_rows, d, 50, n_users, np.float64)
    return data, make_surrogate(name, k), alpha


def ways(task, options):
    """Yield the name and the outcome of each way."""
    data, surrogate, alpha = made(task)
    partitions = array_partitions(data, N_PARTITIONS)
    limits = {"tol": TOLS[-1], "max_iter": 100_000}
    solvers = {"bundle": CuttingPlane(alpha, **limits), "ascent": DualAscent(alpha, **limits)}
    if options.dask:
        from distributed import Client, LocalCluster

        from structsvm_papk.oracles.dask_risk import DaskRisk

        workers = {"n_workers": N_PARTITIONS, "threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(**workers) as cluster, Client(cluster) as client:
            risk = DaskRisk(surrogate, partitions, client)
            for name in [way for way in solvers if way in options.only]:
                yield f"{name}, Dask", certified(solvers[name], risk, perf_counter, options.limit)
        return
    for name, solver in solvers.items():
        risk = PartitionedRisk(surrogate, Here(partitions, surrogate))
        if name in options.only:
            yield name, certified(solver, risk, process_time, options.limit)
    for how in ("sum", "search", "in turn"):
        if surrogate.name == "avg" and f"CoCoA+, {how}" in options.only:
            yield f"CoCoA+, {how}", cocoa(risk, alpha, options.limit, how)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--only", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--json", type=Path, help="merge the numbers into this file")
    options = parser.parse_args()
    small = array_partitions(generated(2000, 500, 5, 10, float), 2)
    for name in ("avg", "ts"):  # kernels are compiled or loaded
        surrogate = make_surrogate(name, 5)
        for solver in (DualAscent(0.1), CuttingPlane(0.1)):
            solver.solve(PartitionedRisk(surrogate, Here(small, surrogate)))
    for task in options.tasks:
        for name, outcome in ways(task, options):
            print(task, name, json.dumps(outcome), flush=True)
            if options.json:
                found = json.loads(options.json.read_text()) if options.json.exists() else {}
                found.setdefault(task, {})[name] = outcome
                options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
