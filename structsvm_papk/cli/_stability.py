"""``bound MODEL DATA``: the risk of new users, from a model file and the data it was trained on."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk import bounds
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.scores import scores_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.readers import Table
from structsvm_papk.data.user_scaling import scaled_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.propositions.optimising import list_risks
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import SURROGATES, make_surrogate

_ALPHAS = (0.3, 1.0, 3.0, 10.0, 30.0)  # times the model's
_DEPTHS = (None, 0.5, 0.9)


def of_new_users(
    model_file: Path, data: Path, held_out: Path | None, target: float | None, search: bool,
    rho: float, policy: str, reading: options.Reading,
) -> dict[str, Any]:  # fmt: skip
    """The bound by stability, beside an interval of held-out users and the uniform bound."""
    model = load_model(model_file)
    if model.surrogate not in SURROGATES:
        raise InputError(
            f"{model_file} is of surrogate {model.surrogate!r}, of which the file holds the name "
            "only: in Python bounds.stability(risk, result) takes the surrogate itself"
        )
    table = reading.table(data, model)
    options.say_columns(table)
    lists = scaled_lists(reading.lists(table).weighted(model.user_weight), model.user_scaling)
    lists = lists.standardized() if model.standardized else lists
    surrogate = make_surrogate(model.surrogate, model.k, model.depth)
    risk = ListRisk(surrogate, lists, policy)
    found = bounds.stability(risk, _result_of(model, risk.column_scale))
    answer = {"kind": "new users", **found.as_dict(), "surrogate": model.surrogate}
    answer |= {"depth": model.depth, "uniform": _uniform(risk.data, model, rho)}
    if target is not None:
        n_users = found.users_for(target)
        answer |= {"target": target, "users_for_target": n_users if n_users < np.inf else None}
    if held_out is not None:
        answer["held_out"] = _interval(held_out, table, model, rho, reading)
    if search:
        answer["search"] = _searched(lists, model, policy)
    return answer


def _result_of(model: Model, scale: Any) -> SolverResult:
    """The fit as its solver returned it, for the columns that it saw."""
    proof = model.certificate
    bound = -np.inf if proof["lower_bound"] is None else proof["lower_bound"]
    w = model.coef if scale is None else model.coef * scale
    return SolverResult(w, proof["objective"], bound, Status(proof["status"]), (), model.alpha)


def _uniform(data: RankingData, model: Model, rho: float) -> dict[str, Any]:
    sizes = int(data.n_pos.sum()), int(data.n_neg.sum()), model.k * data.n_users
    uniform = bounds.uniform(*sizes, n_features=model.n_features, rho=rho)
    return {"half_width": uniform.half_width, "vacuous": uniform.vacuous, "level": 1 - rho}


def _interval(
    path: Path, table: Table, model: Model, rho: float, reading: options.Reading
) -> dict[str, Any]:
    other = reading.second_table(path, table)
    assert other is not None  # as there is a path
    lists = reading.lists(other).usable(model.k)
    values = list_risks(lists, scores_of(model, other)[lists.rows], model.k)
    return bounds.many_users(values, rho).as_dict()


def _searched(lists: RankingData, model: Model, policy: str) -> list[dict[str, Any]]:
    """Bounds at other strengths and depths, smallest first."""
    rows = []
    for depth in dict.fromkeys([model.depth, *_DEPTHS]):
        for factor in _ALPHAS:
            ranker = PAPKRanker(
                model.k, model.surrogate, depth, alpha=factor * model.alpha, policy=policy,
                standardize=False,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = ranker.fit_lists(lists).result_
            found = bounds.stability(ListRisk(ranker.make_surrogate(), lists, policy), result)
            rows.append(
                {"alpha": result.alpha, "depth": depth, "risk": found.risk, "bound": found.bound}
            )
    return sorted(rows, key=lambda row: row["bound"])


def show(answer: dict[str, Any]) -> None:
    """Print the table."""
    uniform, interval = answer["uniform"], answer.get("held_out")
    half = "says nothing" if uniform["vacuous"] else f"half-width {uniform['half_width']:.3g}"
    rows = [
        ("users that it was trained on", f"{answer['n_users']:,}"),
        ("their risk", f"{answer['risk']:.4f}"),
        ("a new user's risk, in expectation, at most", f"{answer['bound']:.4f}"),
        ("weights move without a user by at most", f"{answer['largest_distance']:.3g}"),
        ("  of which for the certificate's gap", f"{answer['from_gap']:.3g}"),
        (f"uniform bound at {uniform['level']:g}, all rows as one list", half),
    ]
    if interval is not None:
        ends = f"{interval['value']:.4f} [{interval['lower']:.4f}, {interval['upper']:.4f}]"
        users = f"{interval['n_users']:,} held-out users, {interval['level']:g}"
        rows.append((users, ends))
    if "target" in answer:
        n_users = answer["users_for_target"]
        text = "no number" if n_users is None else f"about {n_users:,.3g}"
        rows.append((f"users of this kind for {answer['target']:g}", text))
    console.print_table("Risk of new users", ("quantity", ">value"), rows)
    fixed = f", {answer['note']} taken as fixed" if answer["note"] else ""
    console.note(
        "assumed: users are drawn independently; alpha, surrogate and depth were not chosen by "
        f"these users{fixed}; weights of a new fit on one user less"
    )
    if "search" in answer:
        found = [
            (f"{row['alpha']:g}", str(row["depth"] or "k"), f"{row['risk']:.4f}",
             f"{row['bound']:.4f}")
            for row in answer["search"]
        ]  # fmt: skip
        console.print_table("Smallest first", (">alpha", ">depth", ">risk", ">bound"), found)


def refuse_unused(n_files: int, held_out: Path | None, search: bool) -> None:
    """Options of MODEL DATA without them, and more files than these."""
    if n_files > 2:
        raise InputError(f"{n_files} files: give held-out data, or a model and its training data")
    if n_files < 2 and (held_out is not None or search):
        raise InputError("--held-out and --search go with a model and its training data")
