"""Solves on local Dask workers of one thread, and what their seconds went to.

All processes count the seconds of products with X and of the surrogate's kernels, of workers the
slowest counts; what is left of an evaluation is messages and waiting, what is left of a solve the
restricted problem. Seconds are of the clock: a solve waits for other processes.
"""

from collections import Counter
from contextlib import contextmanager
from time import perf_counter

from structsvm_papk import CuttingPlane
from structsvm_papk.oracles import dask_risk, list_risk
from structsvm_papk.solvers import sampled_steps

K, ALPHA, TOL = 10, 1e-3, 1e-6
PARTS = ("products", "kernels", "messages", "sample")  # and the rest
WATCHED = (  # in whose calls a part of the seconds is spent
    (list_risk.ListRisk, "scores", "products"),
    (list_risk.ListRisk, "slopes", "products"),
    (list_risk.ListRisk, "tangents", "kernels"),
    (dask_risk._DaskParts, "run", "messages"),
    (sampled_steps, "_minimum", "sample"),
)
spent: Counter[str] = Counter()  # of this process
_inside: list[str] = []  # what is being counted: calls within it are a part of it


@contextmanager
def local_cluster(n_workers):
    """A client of so many workers, which count what their seconds go to."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings, memory_limit=0) as local, Client(local) as client:
        client.run(watch)
        yield client


def watch():
    """Let this process count, from now on."""
    for owner, method, part in WATCHED:
        call = getattr(owner, method)
        if not hasattr(call, "watched"):
            setattr(owner, method, counted(call, part))


def counted(call, part):
    """The call, which adds its seconds to a part."""

    def watched(*args, **options):
        if _inside:
            return call(*args, **options)
        _inside.append(part)
        started = perf_counter()
        try:
            return call(*args, **options)
        finally:
            spent[part] += perf_counter() - started
            _inside.pop()

    watched.watched = True
    return watched


def spent_here():
    return dict(spent)


def forget():
    spent.clear()


def solved(risk, client=None):
    """Seconds of a solve and what they went to."""
    forget()
    if client:
        client.run(forget)
    started = perf_counter()
    result = CuttingPlane(ALPHA, tol=TOL).solve(risk)
    seconds = perf_counter() - started
    parts = {name: spent[name] for name in PARTS}
    if client:
        workers = client.run(spent_here).values()
        slowest = max(workers, key=lambda of_worker: sum(of_worker.values()))
        for name in ("products", "kernels"):
            parts[name] = slowest.get(name, 0.0)
        parts["messages"] -= parts["products"] + parts["kernels"]
    return {
        "seconds": seconds,
        **parts,
        "rest": seconds - sum(parts.values()),
        "passes": result.data_passes,
        "rows_scored": result.history[-1].rows_scored,
        "objective": result.objective,
        "status": str(result.status),
    }
