"""Write the measured tables of docs/scale.md.

python benchmarks/scale_tables.py
"""

from tables import PAGE, fill, table


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


def cluster(found):
    head = ("fit", "load, s", "fit, s", "processor here, s", "of the workers, s", "a pass, s",
            "objective")  # fmt: skip
    rows = [("one process, one thread", found["one_machine"])]
    for how, sent in (("files", "workers read files"), ("arrays", "arrays sent to workers")):
        for name in ("undisturbed", "worker_killed"):
            rows.append((f"{sent}, {name.replace('_', ' ')}", found[how][name]))
    yield from table(head, [
        [
            name,
            f"{row['load_seconds']:.1f}",
            f"{row['fit_seconds']:.1f}",
            f"{row['processor_seconds']:.2f}",
            " and ".join(f"{each:.2f}" for each in row.get("worker_seconds", ())),
            f"{row['pass_seconds']:.3f}",
            f"{row['objective']:.9f}",
        ]
        for name, row in rows
    ])  # fmt: skip


def cost(found):
    head = ("features", "workers", "GB a worker", "load, s", "compute a pass, s",
            "cluster a pass, s", "passes", "solve", "with 57 passes")  # fmt: skip
    head = [name.replace("57", str(found["model"]["passes"])) for name in head]
    yield from table(head, [
        [
            f"{row['features']}",
            f"{row['workers']}",
            f"{row['gigabytes_a_worker']:.1f}",
            f"{row['load_seconds']:.0f}",
            f"{row['compute_seconds_a_pass']:.2f}",
            f"{row['round_trip_seconds']:.2f}",
            f"{row['passes']}",
            f"{row['solve_seconds'] / 60:.1f} min",
            f"{row['solve_seconds_without_more_passes'] / 60:.1f} min",
        ]
        for row in found["prediction"]
    ])  # fmt: skip


TABLES = {
    "out-of-core": ("out_of_core.json", out_of_core),
    "cluster": ("cluster.json", cluster),
    "cost": ("scaling.json", cost),
}

if __name__ == "__main__":
    main()
