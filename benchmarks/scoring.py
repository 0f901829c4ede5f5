"""Time of scoring rows, in the order of the columns, beside a product by BLAS.

    OMP_NUM_THREADS=1 python -m benchmarks scoring

Best of several runs, one after the other; scores of the package have the same bits whatever the
place and the storage of a row, those of BLAS do not.
"""

from time import perf_counter

import numpy as np
from scipy import sparse

from structsvm_papk.data.features import reported_scores
from structsvm_papk.files import Model

SHAPES = ((1_000_000, 50), (100_000, 500), (1_000_000, 6))
RUNS = 7


def best_time(task, *arguments):
    """Seconds of the fastest of several runs."""
    task(*arguments)
    seconds = []
    for _ in range(RUNS):
        started = perf_counter()
        task(*arguments)
        seconds.append(perf_counter() - started)
    return min(seconds)


def main():
    """Print a table."""
    rng = np.random.default_rng(0)
    print("| rows x columns | storage | BLAS (CSR: SciPy) | in order | predict |")
    print("|---|---|---|---|---|")
    for shape in SHAPES:
        dense = rng.random(shape)
        thin = np.where(rng.random(shape) < 0.1, dense, 0.0)
        storages = {
            "float64, by rows": dense,
            "float64, by columns": np.asfortranarray(dense),
            "float32, by rows": dense.astype(np.float32),
            "CSR, a tenth stored": sparse.csr_matrix(thin),
        }
        del thin
        w = rng.normal(size=shape[1])
        model = Model(w, 10, "avg", 1.0, "cutting_plane", {})
        for name, X in storages.items():
            seconds = (
                best_time(X.__matmul__, w),
                best_time(reported_scores, X, w),
                best_time(model.predict, X),  # looks for NaN and infinities, too
            )
            times = " | ".join(f"{1e3 * one:.0f} ms" for one in seconds)
            print(f"| {shape[0]:,} x {shape[1]} | {name} | {times} |")


if __name__ == "__main__":
    main()
