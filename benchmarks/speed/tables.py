"""Write the measured tables of the pages in `benchmarks/results` from the results.

    python -m benchmarks tables

Only the text between the markers ``<!-- table NAME -->`` and ``<!-- end -->`` is replaced. The
tables show what the targets are about; the files have every number.
"""

import argparse
import re

from benchmarks.common.markdown import RESULTS, fill, grouped, span, table


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.parse_args()
    for page in PAGES:
        fill(RESULTS / page, TABLES)


def machine(found):
    about = dict(found["machine"])
    python, processor = about.pop("python"), about.pop("processor")
    versions = ", ".join(f"{name} {version}" for name, version in about.items())
    load = f"load {found['load_before']:.1f} before and {found['load_after']:.1f} after the run"
    yield f"{processor}; Python {python}, {versions}; {load}."


def many_users(found):
    head = ("surrogate", "passes", "evaluations", "1-slack to 1e-3: times ours", "target")
    rows = []
    for name, own in grouped(found["M"], lambda row: row["surrogate"]):
        parts = [[row for row in own if (row["alpha"] < 0.005) == weak] for weak in (False, True)]
        cells = [[*_effort(part)[1:], _times(part, "speedup")] for part in parts]
        both = ["; ".join(pair) for pair in zip(*cells, strict=True)]
        rows.append([f"`{name}`", *both, _verdict(own)])
    yield from table(head, rows)


def one_user(found):
    head = ("surrogate", "gap", "passes", "gap 1e-9", "1-slack to 1e-6: times ours", "a fifteenth")
    yield from table(head, [
        [f"`{name}`", f"{tight['gap']:.0e}", str(tight["passes"]), _verdict([tight]),
         _times([loose], "speedup"), _verdict([loose])]
        for name, (tight, loose) in grouped(found["T"], lambda row: row["surrogate"])
    ])  # fmt: skip


def dlib(found):
    head = ("alpha", "F - F*", "seconds", "dlib's F - F*", "dlib's seconds", "times ours", "target")
    yield from table(head, [
        [f"{row['alpha']:g}", f"{row['excess']:.0e}", f"{row['seconds']:.2f}",
         f"{row['dlib_excess']:.0e}", f"{row['dlib_seconds']:.2f}", f"{row['speedup']:.1f}",
         _verdict([row])]
        for row in found["L"]
    ])  # fmt: skip


def large(found):
    head = ("task", "surrogate", "gap", "passes", "evaluations", "peak / X", "target")
    yield from table(head, [
        [row["task"], f"`{row['surrogate']}`", *_effort([row]), f"{row['peak_over_X']:.2f}",
         _verdict([row])]
        for row in found["H"]
        if "rejected" not in row
    ])  # fmt: skip


def _effort(rows):
    """Worst gap, most passes and evaluations of several solves."""
    return [
        f"{max(row['gap'] for row in rows):.0e}",
        str(max(row["passes"] for row in rows)),
        f"{max(row['evaluations'] for row in rows):.0f}",
    ]


def path(found):
    names = list(dict.fromkeys(row["surrogate"] for row in found["path"]))
    rows = []
    for task, own in grouped(found["path"], lambda row: row["task"]):
        of = {row["surrogate"]: f"{row['ratio']:.2f}, {_verdict([row])}" for row in own}
        rows.append([task, *(of[name] for name in names)])
    yield from table(("task", *(f"`{name}`" for name in names)), rows)


def oracle(found):
    names = list(dict.fromkeys(row["surrogate"] for row in found))
    rows = []
    for (data, k), own in grouped(found, lambda row: (row["data"], row["k"])):
        ratio = {row["surrogate"]: f"{row['ratio']:.2f}" for row in own}
        rows.append([data, f"{k:,}", *(ratio[name] for name in names)])
    yield from table(("data", "k", *(f"`{name}`" for name in names)), rows)


def first_minute(found):
    now, targets = found["now"], found["targets"]
    later = "fit and score, later process"
    yield from table(("step", "seconds", "target"), [
        *([step, f"{now[step]:.2f}", f"{target:g}: {_met(now[step] <= target)}"]
          for step, target in targets.items()),
        [later, f"{now[later]:.2f}", ""],
    ])  # fmt: skip


def dual_ascent(found):
    """Seconds to each certified gap."""
    head = ("rows x features, alpha", "way", "seconds to a certified gap of", "F")
    rows = []
    for task, ways in found.items():
        for name, points in ways.items():
            certified = [f"{point['seconds']:.1f}: {point['gap']:.0e}" for point in points]
            best = min(point["objective"] for point in points)
            data = re.sub(r"\d{5,}", lambda m: f"{int(m[0]):,}", task.replace(", avg, alpha", ","))
            rows.append([data, name, ", ".join(certified), f"{best:.5g}"])
    yield from table(head, rows)


def out_of_core(found):
    head = ("fit", "memory used / budget, MB", "passes", "fit, s", "times in memory",
            "of the computing thread", "a whole pass, s")  # fmt: skip
    names = {"memory": "in memory", "npy": "`.npy` file", "parquet": "Parquet"}
    yield from table(head, [
        [names[row["how"]],
         f"{row['used_mb']:.0f} / {row['budget_mb'] or 0:.0f}".replace(" / 0", " / -"),
         f"{row['passes']}", f"{row['fit_seconds']:.1f}", f"{row['fit_time_ratio']:.2f}",
         f"{row['thread_ratio']:.2f}", f"{row['pass_seconds']:.2f}"]
        for row in found
    ])  # fmt: skip


def _times(rows, name):
    """How many times our seconds; a lower bound where the 1-slack method was stopped."""
    stopped = not all(row["one_slack_reached"] for row in rows)
    return ("at least " if stopped else "") + span([row[name] for row in rows], ".0f")


def _verdict(rows):
    return _met(all(row["met"] for row in rows))


def _met(met):
    return "met" if met else "**missed**"


TABLES = {
    "machine": ("targets.json", machine),
    "M": ("targets.json", many_users),
    "T": ("targets.json", one_user),
    "L": ("targets.json", dlib),
    "H": ("targets.json", large),
    "path": ("targets.json", path),
    "oracle": ("oracle.json", oracle),
    "first": ("first_minute.json", first_minute),
    "dual_ascent": ("dual_ascent.json", dual_ascent),
    "out-of-core": ("out_of_core.json", out_of_core),
}
PAGES = ("solvers.md", "problems.md", "parts.md", "scale.md")

if __name__ == "__main__":
    main()
