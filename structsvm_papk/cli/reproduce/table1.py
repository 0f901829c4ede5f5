"""``reproduce table1``: metrics of five rankings."""

from typing import Any

from structsvm_papk.cli._shared import console, options
from structsvm_papk.experiments import table1 as experiment


def table1(as_json: options.Json = False) -> None:
    """The metrics of Table 1 on its five rankings, beside the published values."""
    result = experiment.run()
    console.answer(as_json, result, _show, result)


def _show(result: dict[str, Any]) -> None:
    rows = [
        (
            *(row[name] for name in ("ranker", "labels", "metric", "published_as")),
            f"{row['measured']:.6f}",
            f"{row['difference']:.0e}",
        )
        for row in result["rows"]
    ]
    columns = ("ranker", "labels", ">metric", ">published", ">measured", ">difference")
    console.print_table("Table 1", columns, rows)
    print(f"largest absolute difference: {result['max_abs_difference']:.1e}")
