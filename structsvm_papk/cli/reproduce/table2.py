"""``reproduce table2``: GD-Avg against two other methods on simulated lists."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console, options, progress
from structsvm_papk.experiments import table2 as experiment


def table2(
    runs: Annotated[int, typer.Option(help="Simulated lists of each case.")] = 300,
    case: Annotated[
        list[int] | None, typer.Option(help="Only this case, 1 or 2; repeat for both.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first list.")] = 0,
    checkpoint: options.CheckpointFolder = None,
    as_json: options.Json = False,
) -> None:
    """GD-Avg against SGD@k-avg and SVM-pAUC on simulated lists.

    Case 1 is against SGD@k-avg, case 2 against SVM-pAUC; then come certified minimisers.

    The paper does not state the settings of its gradient descent here, so several are run.
    """
    cases, cells = tuple(case or experiment.CASES), options.cells(checkpoint, "table2")
    with progress.line("descending") as say:
        result = experiment.run(
            runs, cases=cases, seed=seed, callback=lambda row: say(row["how"]), cells=cells
        )
    console.answer(as_json, result, _show, result["rows"], cases, runs)


def _show(rows: Sequence[dict[str, Any]], cases: Sequence[int], runs: int) -> None:
    for number in cases:
        _show_case([row for row in rows if row["case"] == number], runs)


def _show_case(rows: Sequence[dict[str, Any]], runs: int) -> None:
    methods, k = f"GD-Avg | {rows[0]['methods'][1]}", rows[0]["k"]
    title = f"Table 2, case {rows[0]['case']}: {methods}, k = {k}, {runs} runs"
    columns = (">precision@k", ">higher", ">equal", ">AUC@k where equal", ">higher", ">w = 0")
    lines: list[Any] = [("published, of 300 runs", *_cells(rows[0]["published"])), None]
    lines += [(row["how"], *_cells(row["measured"])) for row in rows]
    console.print_table(title, ("how", *columns), lines)


def _cells(values: dict[str, Any]) -> tuple[str, ...]:
    def both(pairs: Any) -> str:
        return " | ".join("-" if m is None else f"{m:.2f}±{s:.2f}" for m, s in pairs)

    def counts(pair: Any) -> str:
        return "" if pair is None else " | ".join(map(str, pair))

    return (
        both(values["precision"]),
        counts(values["precision_higher"]),
        str(values["n_equal"]),
        both(values["auc_where_equal"]),
        counts(values["auc_higher"]),
        counts(values.get("zero")),
    )
