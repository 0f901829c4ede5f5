"""``tune``: surrogate, depth, weights of users and alpha chosen by cross-validation."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.options import OUTPUT, PROBLEM, SOLVER
from structsvm_papk.cli._shared.outputs import check_outputs
from structsvm_papk.cli._shared.reading import Reading, say_columns
from structsvm_papk.files.model import certificate_of, save_model
from structsvm_papk.rankers import PAPKRanker, PAPKRankerCV
from structsvm_papk.rankers.ranker_cv import Trial
from structsvm_papk.rankers.settings import as_depth

_CHOICE = "How to choose"
_SHOWN = 10  # settings
_STANDARDIZE = {True: "yes", False: "no", "auto": "auto"}  # as the command line says it


def tune(
    *,
    data: options.Data,
    k: options.K,
    surrogate: Annotated[
        list[str] | None,
        typer.Option(
            help="Try this one; repeat for more. By default avg and ts.", rich_help_panel=PROBLEM
        ),
    ] = None,
    depth: Annotated[
        list[Any] | None,
        typer.Option(
            parser=options.depth,
            help="Try this number of negatives, share of them (0.9), auto or k; repeat for more. "
            "By default auto.",
            metavar="DEPTH",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    user_weight: Annotated[
        list[str] | None,
        typer.Option(
            help="Try this one: equal or positives; repeat. By default equal.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            help="Try this strength; repeat. By default multiples of what fit takes.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    standardize: options.Standardize = "auto",
    user_scaling: Annotated[
        list[Any] | None,
        typer.Option(
            *options.SCALING_FLAGS,
            parser=options.user_scaling,
            help="Scale columns inside each user's list: try this one, none, standardize, rank or "
            "minmax; repeat for more. By default none, columns in units of their own that may be "
            "one, and of one list rank.",
            metavar="NAME",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    positive: options.Positive = False,
    cv: Annotated[int, typer.Option(help="Number of folds of users.", rich_help_panel=_CHOICE)] = 5,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="Metric on held-out users, as in evaluate; by default pap@k.",
            metavar="METRIC",
            rich_help_panel=_CHOICE,
        ),
    ] = None,
    selection: Annotated[
        str,
        typer.Option(
            help="significant: the default, unless others are ahead by more than chance explains; "
            "best: the largest mean.",
            rich_help_panel=_CHOICE,
        ),
    ] = "significant",
    jobs: Annotated[
        int,
        typer.Option(help="Threads; 0: one for each core.", min=0, rich_help_panel=_CHOICE),
    ] = 1,
    label: options.Label = "label",
    group: options.Group = None,
    ignore: options.Ignore = None,
    first_index: options.FirstIndex = None,
    relevance_threshold: options.RelevanceThreshold = None,
    one_list: options.OneList = False,
    missing: options.Missing = None,
    label_gain: options.LabelGain = "linear",
    policy: options.Policy = "cap",
    tol: Annotated[
        float, typer.Option(help="Relative gap of the fit on all users.", rich_help_panel=SOLVER)
    ] = 1e-4,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Stop search and fit after this long.", metavar="SECONDS", rich_help_panel=SOLVER
        ),
    ] = None,
    model_file: Annotated[
        Path | None,
        typer.Option(
            *options.MODEL_FLAGS,
            help="Write the chosen model here.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Keep finished fits in this folder; the same command goes on from there.",
            metavar="DIR",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all",
            help=f"Print every setting, not the {_SHOWN} best alone.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Choose surrogate, depth and alpha on held-out users, and train with them.

    Every setting is trained on all folds of users but one and scored on the users of that one; the
    chosen one is then trained on all users. Prints the settings, best first.
    """
    check_outputs([data], [model_file], folder=checkpoint)
    reading = Reading(
        label=label,
        group=group,
        ignore=ignore,
        first_index=first_index,
        relevance_threshold=relevance_threshold,
        one_list=one_list,
        missing=missing,
        label_gain=label_gain,
    )
    tried: dict[str, Any] = {
        "surrogates": surrogate,
        "depths": [as_depth(one, missing) for one in depth or ()],
        "user_weights": user_weight,
        "alphas": alpha,
        "user_scaling": user_scaling,
    }
    table = reading.table(data)
    lists = reading.lists(table)
    with console.bar("fits on folds") as update, warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ranker = PAPKRankerCV(
            k=k,
            **{name: values for name, values in tried.items() if values},
            standardize=standardize,
            positive=positive,
            cv=cv,
            scoring=scoring,
            selection=selection,
            n_jobs=jobs or -1,
            policy=policy,
            missing=missing,
            tol=tol,
            time_limit=time_limit,
            checkpoint=checkpoint,
            callback=_watch(update),
        )
        try:
            ranker.fit_lists(lists)
        except KeyboardInterrupt:
            if checkpoint is not None:
                console.note(f"finished fits are kept in {checkpoint}; the same command goes on")
            raise
    say_columns(table, lists)
    console.note(str(ranker.exclusions_))
    for warning in raised:
        console.warn(str(warning.message))
    if model_file is not None:
        model = replace(
            ranker.to_model(),
            feature_names=table.feature_names,
            first_index=table.first_index,
            relevance_threshold=relevance_threshold,
        )
        save_model(model_file, model)
        console.note(f"model written to {model_file}")
    content = _content(k, ranker, reading)
    content["model"] = None if model_file is None else str(model_file)
    console.answer(as_json, content, _show, content, None if show_all else _SHOWN)
    if not ranker.result_.converged:
        raise typer.Exit(1)


def _watch(update: Callable[..., None]) -> Callable[[Trial], None]:
    def watch(trial: Trial) -> None:
        setting = trial.setting
        label = (
            f"{setting.surrogate}, depth {setting.depth or 'k'}, fold {trial.fold + 1}: "
            f"{trial.score:.4f}"
        )
        update(completed=trial.n_done, total=trial.n_planned, description=label)

    return watch


def _content(k: int, ranker: PAPKRankerCV, reading: Reading) -> dict[str, Any]:
    """All settings, best first; the chosen one, and how it is trained by itself."""
    results = ranker.cv_results_
    rows = [
        results["params"][i]
        | {
            "mean": results["mean_test_score"][i],
            "error": results["se_test_score"][i],
            "folds": results["n_splits"][i],
            "fit_seconds": results["mean_fit_time"][i],
        }
        for i in np.argsort(results["rank_test_score"], kind="stable")
    ]
    best = ranker.best_params_
    choice = ranker.choice_
    return {
        "scoring": choice.scoring,
        "n_splits": ranker.n_splits_,
        "settings": rows,
        "chosen": best | {"mean": ranker.best_score_},
        "default": choice.default.as_dict(),
        "best_other": None if choice.rival is None else choice.rival.as_dict(),
        "ahead_of_default": {
            "mean": choice.lead,
            "error": choice.error,
            "by_chance": choice.by_chance,
        },
        "certified": choice.certified,
        "choice": str(choice),
        **certificate_of(ranker.result_),
        "message": ranker.result_.message,
        "command": _command(k, ranker),
        "python": _python(ranker, reading),
        "standardized": bool(best["standardize"]),
        "positive": ranker.positive,
    }


def _command(k: int, ranker: PAPKRankerCV) -> str:
    """The call of fit that takes the chosen setting; how rows are read it is told as here."""
    chosen = ranker.best_params_
    words = [
        "structsvm-papk fit DATA",
        f"--k {k}",
        f"--surrogate {chosen['surrogate']}",
        f"--depth {chosen['depth'] or 'k'}",
        f"--user-weight {chosen['user_weight']}",
        f"--alpha {chosen['alpha']!r}",
        f"--standardize {_STANDARDIZE[chosen['standardize']]}",
        f"--user-scaling {chosen['user_scaling'] or 'none'}",
    ]
    if ranker.positive:
        words.append("--positive")
    if ranker.missing is not None:
        words.append(f"--missing {ranker.missing}")
    return " ".join([*words, "--model MODEL"])


def _python(ranker: PAPKRankerCV, reading: Reading) -> str:
    """The ranker of the chosen setting; what the search shares with it and is not its default."""
    settings = ranker.get_params()
    settings["one_list"] = reading.one_list
    settings["relevance_threshold"] = reading.relevance_threshold
    settings["label_gain"] = reading.label_gain
    arguments = {"k": ranker.k, **ranker.best_params_}
    for name, default in PAPKRanker().get_params().items():
        if name in arguments or name in ("callback", "checkpoint"):
            continue
        if name in settings and settings[name] != default:
            arguments[name] = settings[name]
    return f"PAPKRanker({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _show(content: dict[str, Any], n_shown: int | None) -> None:
    rows = []
    for row in content["settings"]:
        cells = [
            row["surrogate"],
            str(row["depth"] or "k"),
            row["user_weight"],
            f"{row['alpha']:.4g}",
            row["user_scaling"] or "none",
            f"{row['mean']:.4f}",
            f"{row['error']:.4f}",
            str(row["folds"]),
        ]
        if content["chosen"].items() <= row.items():
            cells = [f"[bold]{cell}[/bold]" for cell in cells]
        rows.append(cells)
    title = f"Mean {content['scoring']} over held-out users, {content['n_splits']} folds"
    columns = (
        "surrogate", ">depth", "users' weight", ">alpha", "scaling", ">mean", ">± error", ">folds"
    )  # fmt: skip
    console.print_table(title, columns, rows[:n_shown])
    if n_shown is not None and len(rows) > n_shown:
        console.note(f"{len(rows) - n_shown} further settings: --all")
    print(f"{content['choice']}\nrepeat: {content['command']}\nPython: {content['python']}")
