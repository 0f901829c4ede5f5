"""Write the measured tables of docs/scale.md.

python benchmarks/scale_tables.py
"""

from tables import PAGE, fill, table

SHOWN = ("products", "messages", "sample")


def main():
    fill(PAGE.with_name("scale.md"), TABLES)


def out_of_core(found):
    head = ("fit", "memory used / budget, MB", "passes", "fit, s", "times in memory",
            "of the computing thread", "a whole pass, s")  # fmt: skip
    names = {"memory": "in memory", "npy": "`.npy` file", "parquet": "Parquet"}
    yield from table(head, [
        [
            names[row["how"]],
            f"{row['used_mb']:.0f} / {row['budget_mb'] or 0:.0f}".replace(" / 0", " / -"),
            f"{row['passes']}",
            f"{row['fit_seconds']:.1f}",
            f"{row['fit_time_ratio']:.2f}",
            f"{row['thread_ratio']:.2f}",
            f"{row['pass_seconds']:.2f}",
        ]
        for row in found
    ])  # fmt: skip


def dask_time(found):
    head = ("rows", "surrogate", "way", "solve, s", "times one thread", *SHOWN)
    alone = {(r["rows"], r["surrogate"]): r["seconds"] for r in found if r["way"] == "one thread"}
    yield from table(head, [
        [
            f"{row['rows']:,}",
            row["surrogate"],
            row["way"],
            f"{row['seconds']:.2f}",
            f"{row['seconds'] / alone[row['rows'], row['surrogate']]:.2f}",
            *(f"{row[part]:.2f}" for part in SHOWN),
        ]
        for row in found
    ])  # fmt: skip


def checked(found):
    head = ("rows", "features", "workers", "delay of a message, ms", "predicted, s", "measured, s",
            "predicted / measured")  # fmt: skip
    yield from table(head, [
        [
            f"{row['rows']:,}",
            f"{row['features']}",
            f"{row['workers']}",
            f"{1e3 * row.get('delay', 0.0):.0f}",
            f"{row['predicted']:.2f}",
            f"{row['seconds']:.2f}",
            f"{row['predicted'] / row['seconds']:.2f}",
        ]
        for row in found["checked"]
    ])  # fmt: skip


def many(found):
    head = ("rows", "workers", "GB a worker", "compute, s", "messages, s", "solve, s",
            "times one worker", "fastest with")  # fmt: skip
    yield from table(head, [
        [
            f"{row['rows']:,}",
            f"{row['workers']}",
            f"{row['GB a worker']:.2g}",
            f"{row['compute']:.2g}",
            f"{row['messages']:.2g}",
            f"{row['solve']:.2g}",
            f"{row['times one worker']:.0f}",
            f"{row['fastest with']}",
        ]
        for row in found["many"]
    ])  # fmt: skip


TABLES = {
    "out-of-core": ("out_of_core.json", out_of_core),
    "dask-time": ("dask_time.json", dask_time),
    "checked": ("machines.json", checked),
    "many": ("machines.json", many),
}

if __name__ == "__main__":
    main()
