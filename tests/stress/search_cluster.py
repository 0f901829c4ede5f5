"""Fits on a Dask cluster whose workers come and go: the bits of an undisturbed fit, or "failed".

    python tests/stress/search_cluster.py --problems 40

In mid-run a worker is retired, or dies, or data are moved, or the whole cluster is restarted, which
a fit may not survive. The objective is computed again in this process. Workers are processes; a
restart takes seconds.
"""

import logging
import os
import sys
import time
from functools import cache
from threading import Thread

import numpy as np
from searching import main

_EVENTS = ("retire", "die", "rebalance", "restart one", "restart")


@cache
def _cluster():
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster = LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs=50
    )
    return cluster, Client(cluster)


def check(seed, report, only=None):
    from structsvm_papk import (
        CCCP,
        CuttingPlane,
        EmpiricalRisk,
        RankingData,
        Status,
        make_surrogate,
    )
    from structsvm_papk.datasets import linear_lists
    from structsvm_papk.files.partitions import array_partitions
    from structsvm_papk.oracles.dask_risk import DaskRisk

    rng = np.random.default_rng(seed)
    event = only or _EVENTS[seed % len(_EVENTS)]
    cluster, client = _cluster()
    shape = {"n_users": int(rng.integers(10, 60)), "n_items": int(rng.integers(12, 40))}
    lists = linear_lists(**shape, n_features=int(rng.integers(2, 8)), noise=1.0, seed=seed)
    data = RankingData.from_groups(lists.X, lists.y, lists.groups)
    name = str(rng.choice(["ts", "avg", "max", "pauc", "clipped_ramp"]))
    surrogate, alpha = make_surrogate(name, 3, 8), float(10 ** rng.uniform(-4, -1))
    positive = bool(rng.random() < 0.3)
    if name == "clipped_ramp":
        solver = CCCP(alpha, tol=1e-3, max_iter=5, positive=positive)
    else:
        solver = CuttingPlane(alpha, 1e-7, max_iter=300, positive=positive)
    partitions = array_partitions(data, int(rng.integers(2, 9)))
    report.problem = f"{shape} {name} {alpha:.1e} {len(partitions)} partitions {event} {positive=}"
    whole = solver.solve(DaskRisk(surrogate, partitions, client))
    when, acts = int(rng.integers(1, max(2, whole.n_iter))), []

    def disturb(progress):
        if progress.iteration == when and not acts:
            acts.append(Thread(target=_do, args=(event, client, int(rng.integers(3)))))
            acts[0].start()
            if rng.random() < 0.5:
                acts[0].join()

    result = solver.solve(DaskRisk(surrogate, partitions, client), callback=disturb)
    for act in acts:
        act.join()
    while len(client.scheduler_info(n_workers=-1)["workers"]) < 3:  # the next problem's
        cluster.scale(3)
        time.sleep(0.3)
    report.counts[f"{event}: {result.status}"] += 1
    value = alpha / 2 * (result.w @ result.w) + EmpiricalRisk(surrogate, data)(result.w)[0]
    if abs(value - result.objective) > 1e-9 * max(1.0, value):
        report.add("objective is not that of the point", event, f"{result.objective} {value}")
    same = result.status == whole.status and np.array_equal(result.w, whole.w)
    lost = event == "restart" and result.status is Status.FAILED
    if not same and not lost:
        report.add("another result", event, f"{whole.status}, {result.status} {result.notes}")


def _do(event, client, which):
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    one = workers[which % len(workers)]
    try:
        if event == "retire":
            client.retire_workers([one])
        elif event == "die":
            client.run(os._exit, 9, workers=[one], on_error="ignore")
        elif event == "rebalance":
            client.rebalance()
        elif event == "restart one":
            client.restart_workers([one], raise_for_error=False, timeout=90)
        else:
            client.restart(timeout=90)
    except OSError:
        pass  # of the act itself: a worker went while it was asked


if __name__ == "__main__":
    sys.exit(main(check, __doc__, _EVENTS, 40))
