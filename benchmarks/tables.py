"""Write the measured tables of docs/benchmarks.md from the JSON files in benchmarks/results.

    python benchmarks/tables.py

Only the text between the markers ``<!-- table NAME -->`` and ``<!-- end -->`` is replaced.
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "benchmarks.md"


def main():
    fill(PAGE, TABLES)


def fill(page, tables):
    """Write tables into a page, each between its markers."""
    text = page.read_text()
    for name, (file, write) in tables.items():
        source = RESULTS / file
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if source.exists() and pattern.search(text):
            lines = "\n".join(write(json.loads(source.read_text())))
            text = pattern.sub(lambda m, lines=lines: f"{m[1]}\n{lines}\n\n{m[2]}", text)
    page.write_text(text)


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def machine(found):
    about = dict(found["machine"])
    python, processor = about.pop("python"), about.pop("processor")
    versions = ", ".join(f"{name} {version}" for name, version in about.items())
    load = f"load {found['load_before']:.1f} before and {found['load_after']:.1f} after the run"
    yield f"{processor}; Python {python}, {versions}; {load}."


def many_users(found):
    head = ("surrogate", "alpha", "F", "certified gap", "passes", "seconds", "evaluations", "QP",
            "1-slack to 1e-3", "times ours", "ours to 1e-3 too", "target")  # fmt: skip
    yield from table(head, [_many_users_row(row) for row in found["M"]])


def _many_users_row(row):
    if "rejected" in row:
        return _rejected(row, 12)
    return [*_solve(row), *_one_slack(row), _times(row, "speedup_same_gap"), _verdict(row)]


def one_user(found):
    head = ("surrogate", "alpha", "F", "certified gap", "passes", "seconds", "evaluations", "QP",
            "1-slack to 1e-6", "times ours", "target")  # fmt: skip
    yield from table(head, [_one_user_row(row) for row in found["T"]])


def _one_user_row(row):
    if "rejected" in row:
        return _rejected(row, 11)
    return [*_solve(row), *(_one_slack(row) if "speedup" in row else ("", "")), _verdict(row)]


def dlib(found):
    head = ("alpha", "F - F*", "passes", "seconds", "QP", "dlib's F - F*", "dlib's seconds",
            "times ours", "target")  # fmt: skip
    yield from table(head, [_dlib_row(row) for row in found["L"]])


def _dlib_row(row):
    theirs = ("not installed", "", "")
    if "dlib_seconds" in row:
        theirs = f"{row['dlib_excess']:.0e}", f"{row['dlib_seconds']:.2f}", f"{row['speedup']:.1f}"
    ours = f"{row['excess']:.0e}", str(row["passes"]), f"{row['seconds']:.2f}"
    return [f"{row['alpha']:g}", *ours, f"{row['qp_share']:.0%}", *theirs, _verdict(row)]


def behance(found):
    head = ("task", "surrogate", "F", "certified gap", "passes", "seconds", "evaluations", "QP",
            "peak memory / X", "target")  # fmt: skip
    yield from table(head, [_behance_row(row) for row in found["H"]])


def _behance_row(row):
    if "rejected" in row:
        return [row["task"], f"`{row['surrogate']}`", row["rejected"], *[""] * 7]
    surrogate, _, *solve = _solve(row)
    return [row["task"], surrogate, *solve, f"{row['peak_over_X']:.2f}", _verdict(row)]


def path(found):
    head = ("task", "surrogate", "ten cold solves, s", "passes", "path, s", "passes", "ratio",
            "worst gap", "target")  # fmt: skip
    yield from table(head, [
        [row["task"], f"`{row['surrogate']}`",
         f"{row['cold_seconds']:.2f}", str(row["cold_passes"]),
         f"{row['warm_seconds']:.2f}", str(row["warm_passes"]), f"{row['ratio']:.2f}",
         f"{row['worst_gap']:.0e}", _verdict(row)]
        for row in found["path"]
    ])  # fmt: skip


def oracle(found):
    head = ("data", "k", "surrogate", "evaluation, ms", "two products, ms", "ratio")
    yield from table(head, [
        [row["data"], f"{row['k']:,}", f"`{row['surrogate']}`", f"{row['ms']:.2f}",
         f"{row['products_ms']:.2f}", f"{row['ratio']:.2f}"]
        for row in found["evaluation"]
    ])  # fmt: skip
    start = found["start"]
    yield ""
    yield (
        f"`import structsvm_papk` takes {start['import']:.2f} s; the first evaluation of a later "
        f"process, with compiled kernels from the cache, {start['first']:.2f} s."
    )


def memory(found):
    head = ("fit", "surrogate", "X, MB", "process before, MB", "peak, MB", "limit, MB")
    yield from table(head, [
        [_FITS[row["task"]], f"`{row['surrogate']}`", f"{row['X_mb']:.0f}",
         f"{row['before_mb']:.0f}", f"{row['peak_mb']:.0f}", f"{row['limit_mb']:.0f}"]
        for row in found
    ])  # fmt: skip


def first_minute(found):
    now, before = found["now"], found.get("before", {})
    head = ("step", "seconds", "before", "ratio", "target")
    yield from table(head, [
        [
            step, f"{seconds:.2f}",
            *((f"{before[step]:.2f}", _ratio(seconds, before[step])) if before else ("", "")),
            _within(seconds, found["targets"].get(step)),
        ]
        for step, seconds in now.items()
    ])  # fmt: skip


def _ratio(seconds, before):
    return "" if before < 0.1 else f"{seconds / before:.2f}"  # below, it is noise


def _within(seconds, target):
    return "" if target is None else f"{target:g} s: {_verdict({'met': seconds <= target})}"


def row_skipping(found):
    head = ("data", "k", "alpha", "surrogate", "certified gap", "passes", "all rows, s",
            "skipping, s", "ratio", "share of rows scored")  # fmt: skip
    yield from table(head, [
        [row["task"], str(row["k"]), f"{row['alpha']:g}", f"`{row['surrogate']}`",
         _gap_or_status(row), str(row["passes"]), f"{row['seconds_plain']:.2f}",
         f"{row['seconds']:.2f}", f"{row['time_ratio']:.2f}", f"{row['visit_ratio']:.3f}"]
        for row in found
    ])  # fmt: skip


def dual_ascent(found):
    head = ("task", "way", "seconds", "F", "certified gap", "iterations")
    yield from table(head, [
        [
            task, name, f"{point['seconds']:.1f}", f"{point['objective']:.5g}",
            f"{point['gap']:.1e}" if "gap" in point else "",
            str(point.get("iterations", point.get("epochs", ""))),
        ]
        for task, ways in found.items()
        for name, points in ways.items()
        for point in points
    ])  # fmt: skip


def border(found):
    head = ("data", "features", "users", "surrogate", "depth", "alpha", "bundle, s", "gap",
            "ascent, s", "gap", "ratio")  # fmt: skip
    yield from table(head, [
        [
            row["data"], str(row["features"]), str(row["users"]), f"`{row['surrogate']}`",
            "k" if row["depth"] is None else f"{row['depth']:g}", f"{row['alpha']:g}",
            *(
                text
                for name in ("CuttingPlane", "DualAscent")
                for text in (f"{row[f'{name} seconds']:.2f}", f"{row[f'{name} gap']:.0e}")
            ),
            f"{row['CuttingPlane seconds'] / row['DualAscent seconds']:.1f}",
        ]
        for row in found
    ])  # fmt: skip


def ramps(found):
    head = ("data", "surrogate", "before, s", "F", "now, s", "F", "criticality", "passes",
            "now / before", "target")  # fmt: skip
    yield from table(head, [_ramps_row(*key.rsplit(", ", 1), row) for key, row in found.items()])


def _ramps_row(task, surrogate, row):
    before, now = row["before"], row["now"]
    share = now["seconds"] / before["seconds"]
    met = share <= 0.25 and now["objective"] <= 1.001 * before["objective"]
    return [
        f"{task}, {row['rows']:,} x {row['features']}, {row['users']:,} users", f"`{surrogate}`",
        f"{before['seconds']:.2f}", f"{before['objective']:.5f}",
        f"{now['seconds']:.2f}", f"{now['objective']:.5f}",
        f"{now['criticality']:.0e}", str(now["passes"]), f"{share:.2f}", "met" if met else "missed",
    ]  # fmt: skip


def _gap_or_status(row):
    return f"{row['gap']:.0e}" if row["status"] == "converged" else row["status"]


_FITS = {
    "one_user": "one user, k = 500",
    "many_users": "2,000 users, k = 10",
    "auc": "one user, all negatives",
}


def _solve(row):
    return [
        f"`{row['surrogate']}`", f"{row['alpha']:g}", f"{row['objective']:.6g}",
        f"{row['gap']:.0e}", str(row["passes"]), f"{row['seconds']:.2f}",
        f"{row['evaluations']:.0f}", f"{row['qp_share']:.0%}",
    ]  # fmt: skip


def _one_slack(row):
    seconds = f"{row['one_slack_seconds']:.2f} s"
    if not row["one_slack_reached"]:
        seconds = f"stopped at {seconds}, gap {row['one_slack_gap']:.0e}"
    return seconds, _times(row, "speedup")


def _times(row, name):
    return ("" if row["one_slack_reached"] else "> ") + f"{row[name]:.1f}"


def _verdict(row):
    return "met" if row["met"] else "**missed**"


def _rejected(row, width):
    start = [f"`{row['surrogate']}`", f"{row['alpha']:g}", row["rejected"]]
    return start + [""] * (width - len(start))


TABLES = {
    "machine": ("targets.json", machine),
    "M": ("targets.json", many_users),
    "T": ("targets.json", one_user),
    "L": ("targets.json", dlib),
    "H": ("targets.json", behance),
    "path": ("targets.json", path),
    "oracle": ("oracle.json", oracle),
    "first": ("first_minute.json", first_minute),
    "memory": ("memory.json", memory),
    "rows": ("row_skipping.json", row_skipping),
    "dual_ascent": ("dual_ascent.json", dual_ascent),
    "border": ("dual_border.json", border),
    "ramps": ("ramps.json", ramps),
}

if __name__ == "__main__":
    main()
