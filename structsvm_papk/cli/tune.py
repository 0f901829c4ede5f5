"""``tune``: surrogate, depth, weights of users and alpha chosen by cross-validation."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.declared import command_line, values_of
from structsvm_papk.cli._shared.options import OUTPUT, PROBLEM, SOLVER, WRITTEN, option
from structsvm_papk.cli.fit import fit
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import certificate_of, save_model
from structsvm_papk.rankers import PAPKRanker, PAPKRankerCV
from structsvm_papk.rankers.ranker_cv import Trial

_CHOICE = partial(option, "How to choose")
_SHOWN = 10  # settings


@dataclass(frozen=True)
class Grid:
    """What is tried."""

    k: int = options.K
    surrogate: list[str] | None = PROBLEM(
        None, "Try this one; repeat for more. By default avg and ts."
    )
    depth: list[str] | None = PROBLEM(
        None,
        "Try this number of negatives, share of them (0.9), auto or k; repeat for more. By default "
        "auto.",
        "DEPTH",
    )
    user_weight: list[str] | None = PROBLEM(
        None, "Try this one: equal or positives; repeat. By default equal."
    )
    alpha: list[float] | None = PROBLEM(
        None, "Try this strength; repeat. By default multiples of what fit takes."
    )
    standardize: str = PROBLEM("auto", options.STANDARDIZE, "HOW")
    user_scaling: list[str] | None = PROBLEM(
        None,
        "Scale columns inside each user's list: try this one, none, standardize, rank or minmax; "
        "repeat for more. By default none, columns in units of their own that may be one, and "
        "of one list rank.",
        "NAME",
        flags=options.SCALING_FLAGS,
    )
    positive: bool = options.POSITIVE

    def settings(self, missing: str | None) -> dict[str, Any]:
        """The parameters of `PAPKRankerCV`."""
        settings: dict[str, Any] = {
            "k": self.k,
            "surrogates": self.surrogate,
            "depths": [options.parse_depth(text, missing) for text in self.depth or ()],
            "user_weights": self.user_weight,
            "alphas": self.alpha,
            "standardize": options.parse_standardize(self.standardize),
            "user_scaling": [options.parse_scaling(text) for text in self.user_scaling or ()],
            "positive": self.positive,
        }
        # what is not given is left to PAPKRankerCV
        return {name: value for name, value in settings.items() if value not in (None, [])}


@dataclass(frozen=True)
class Choice:
    """How one setting is chosen."""

    cv: int = _CHOICE(5, "Number of folds of users.")
    scoring: str | None = _CHOICE(
        None, "Metric on held-out users, as in evaluate; by default pap@k.", "METRIC"
    )
    selection: str = _CHOICE(
        "significant",
        "significant: the default, unless others are ahead by more than chance explains; best: the "
        "largest mean.",
    )
    n_jobs: int = _CHOICE(1, "Threads; 0: one for each core.", flags="--jobs")

    def settings(self) -> dict[str, Any]:
        """The parameters of `PAPKRankerCV`."""
        return values_of([self]) | {"n_jobs": self.n_jobs or -1}

    def __post_init__(self) -> None:
        if self.n_jobs < 0:
            raise InputError(f"--jobs {self.n_jobs}: a number of threads, or 0 for one each core")


@dataclass(frozen=True)
class Stopping:
    """When solvers stop; fits on folds have a tolerance of their own."""

    tol: float = SOLVER(1e-4, "Relative gap of the fit on all users.")
    cv_tol: float = SOLVER(1e-2, "Relative gap of the fits on folds.")
    time_limit: float | None = SOLVER(None, "Stop search and fit after this long.", "SECONDS")

    def limits(self) -> dict[str, Any]:
        """The parameters of `PAPKRankerCV`."""
        return {"tol": self.tol, "cv_tol": self.cv_tol, "time_limit": self.time_limit}


def tune(
    *,
    data: Path = options.DATA,
    grid: Grid,
    choice: Choice,
    reading: options.TrainingRows,
    stopping: Stopping,
    saving: options.Saving,
    model_file: Path | None = WRITTEN(
        None, "Write the chosen model here.", "FILE", flags=options.MODEL_FLAGS
    ),
    plot: Path | None = options.PLOT,
    policy: str = options.policy("cap"),
    show_all: bool = OUTPUT(
        False, f"Print every setting, not the {_SHOWN} best alone.", flags="--all"
    ),
    as_json: bool = options.JSON,
) -> None:
    """Choose surrogate, depth and alpha on held-out users, and train with them.

    Every setting is trained on all folds of users but one and scored on the users of that one; the
    chosen one is then trained on all users. Prints the settings, best first; --plot draws the
    metric against the depth, a line a surrogate.
    """
    options.check_plot(plot)
    table = reading.table(data)
    lists = reading.lists(table)
    checkpoint = saving.checkpoint
    with console.bar("fits on folds") as update, warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ranker = PAPKRankerCV(
            **grid.settings(reading.missing), **choice.settings(), **stopping.limits(),
            policy=policy, missing=reading.missing,
            checkpoint=checkpoint, callback=_watch(update),
        )  # fmt: skip
        try:
            ranker.fit_lists(lists)
        except KeyboardInterrupt:
            if checkpoint is not None:
                console.note(f"finished fits are kept in {checkpoint}; the same command goes on")
            raise
    options.say_columns(table)
    console.note(str(ranker.exclusions_))
    for warning in raised:
        console.warn(str(warning.message))
    if model_file is not None:
        model = replace(
            ranker.to_model(), feature_names=table.feature_names, first_index=table.first_index,
            relevance_threshold=reading.relevance_threshold,
        )  # fmt: skip
        save_model(model_file, model)
        console.note(f"model written to {model_file}")
    options.save_plot(plot, ranker.plot)
    asked = values_of([grid, choice, reading, stopping]) | {"data": data, "policy": policy}
    content = _content(ranker, asked, model_file)
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


def _content(
    ranker: PAPKRankerCV, asked: dict[str, Any], model_file: Path | None
) -> dict[str, Any]:
    """All settings, best first; the chosen one, and the calls that repeat it."""
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
        "command": _command(best, asked),
        "python": _python(ranker, asked),
        "standardized": bool(best["standardize"]),
        "positive": ranker.positive,
        "model": None if model_file is None else str(model_file),
    }


def _command(chosen: dict[str, Any], asked: dict[str, Any]) -> str:
    """The call of fit that gives the chosen model.

    Whatever option fit has too keeps its value; of those that were tried it is the chosen one.
    """
    standardize = {True: "yes", False: "no"}.get(chosen["standardize"], "auto")
    as_options = chosen | {
        "data": asked["data"],
        "k": asked["k"],
        "depth": chosen["depth"] or "k",
        "standardize": standardize,
    }
    return command_line("fit", fit, as_options, asked) + " --model MODEL"


def _python(ranker: PAPKRankerCV, asked: dict[str, Any]) -> str:
    """The ranker of the chosen setting; what the search shares with it and is not its default."""
    settings = ranker.get_params()
    settings["one_list"] = asked["one_list"]
    settings["relevance_threshold"] = asked["relevance_threshold"]
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
