"""Time of scoring rows, in the order of the columns, beside a product by BLAS.

    python -m benchmarks scoring

Best of several runs, one after the other; scores of the package have the same bits whatever the
place and the storage of a row, those of BLAS do not.
"""

import numpy as np
from scipy import sparse

from benchmarks.common.markdown import table
from benchmarks.speed.harness import in_turns, parser, save
from structsvm_papk.data.features import reported_scores
from structsvm_papk.files import Model

SHAPES = ((1_000_000, 50), (100_000, 500), (1_000_000, 6))
SMALL = ((1000, 50),)
RUNS = 7


def main():
    options = parser(__doc__).parse_args()
    rng = np.random.default_rng(0)
    rows = [row for shape in (SMALL if options.small else SHAPES) for row in measured(shape, rng)]
    head = ("rows x columns", "storage", "BLAS (CSR: SciPy)", "in order", "predict")
    lines = [
        [
            row["shape"],
            row["storage"],
            *(f"{row[way]:.3g} ms" for way in ("BLAS", "own", "predict")),
        ]
        for row in rows
    ]
    print("\n".join(table(head, lines)))
    save(options.json, rows)


def measured(shape, rng):
    """Milliseconds of each way, for each storage."""
    n_rows, n_columns = shape
    dense = rng.random(shape)
    thin = np.where(rng.random(shape) < 0.1, dense, 0.0)
    storages = {
        "float64, by rows": dense,
        "float64, by columns": np.asfortranarray(dense),
        "float32, by rows": dense.astype(np.float32),
        "CSR, a tenth stored": sparse.csr_matrix(thin),
    }
    del thin
    w = rng.normal(size=n_columns)
    model = Model(w, 10, "avg", 1.0, "cutting_plane", {})
    for name, X in storages.items():
        ways = {
            "BLAS": lambda X=X: X @ w,
            "own": lambda X=X: reported_scores(X, w),
            "predict": lambda X=X: model.predict(X),  # looks for NaN and infinities, too
        }
        in_turns(ways, 1)  # warms up
        runs = in_turns(ways, RUNS)
        row = {"shape": f"{n_rows:,} x {n_columns}", "storage": name}
        yield row | {way: 1e3 * run.seconds for way, run in runs.items()}


if __name__ == "__main__":
    main()
