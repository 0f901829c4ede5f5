import numpy as np
import pytest

from helpers.marks import slow
from helpers.problems import ranking_data, uneven
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files import Checkpoint, atomic, checkpoint
from structsvm_papk.files.checkpoint import _FILE
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.solver import Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate


def make_risk(name="ts", n_users=12, k=2, offset=0.0, n_features=5):
    data = ranking_data(n_users, 20, n_features)
    X = data.X[data.rows] + offset
    return EmpiricalRisk(make_surrogate(name, k), RankingData(X, data.labels, data.indptr))


SOLVERS = {
    "bundle": (CuttingPlane(1e-3), make_risk()),
    "one list": (CuttingPlane(1e-3), make_risk("max", n_users=1)),
    "one_slack": (CuttingPlane(1e-2, method="one_slack"), make_risk()),
    "ascent": (DualAscent(1e-2), make_risk("avg", n_users=6)),
    "cccp": (CCCP(1e-2), make_risk("clipped_ramp")),
    "cccp, race": (CCCP(1e-2, tol=1e-4), make_risk("clipped_ramp", n_users=24)),
}
LONG = ("one_slack", "cccp")  # a second each, on paths that others take too
NAMES = [slow(name) if name in LONG else name for name in SOLVERS]


def stop_at(iteration, error=None):
    def callback(progress):
        if progress.iteration < iteration:
            return False
        if error is not None:
            raise error
        return True

    return callback


def raising(error):
    def how(*_, **__):
        raise error

    return how


@pytest.mark.parametrize("name", NAMES)
def test_a_later_solve_goes_on_from_what_a_stopped_one_kept(name, tmp_path):
    solver, risk = SOLVERS[name]
    whole = solver.solve(risk)
    path = tmp_path / "kept"
    n = max(2, 2 * whole.n_iter // 3)
    error = KeyboardInterrupt() if n % 2 else None
    stopped = solver.solve(risk, callback=stop_at(n, error), checkpoint=Checkpoint(path))
    assert stopped.status in (Status.STOPPED, Status.INTERRUPTED)
    resumed = solver.solve(risk, checkpoint=Checkpoint(path))
    assert resumed.status is whole.status and f"went on from {path}" in resumed.message
    assert resumed.objective <= stopped.objective * (1 + 1e-12)
    if np.isfinite(whole.lower_bound):
        assert resumed.lower_bound <= whole.objective + 1e-12
        assert resumed.objective == pytest.approx(whole.objective, rel=2e-6)
        if isinstance(solver, DualAscent):  # cuts or dual variables came along, not w alone
            assert resumed.history[0].lower_bound == pytest.approx(stopped.lower_bound, rel=1e-9)
        else:
            assert resumed.n_iter < whole.n_iter
        again = solver.solve(risk, checkpoint=Checkpoint(path))
        assert again.status is whole.status and again.n_iter <= 5
    else:
        assert resumed.criticality <= solver.tol
    assert list(tmp_path.iterdir()) == [path]


def ramp_risk(surrogate, n_lists, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_lists), rng.integers(4, 25, n_lists))
    X = rng.normal(size=(groups.size, 4))
    score = X @ rng.normal(size=4) + rng.normal(size=groups.size)
    lists = RankingData.from_groups(X, score > np.quantile(score, 0.7), groups)
    return EmpiricalRisk(make_surrogate(surrogate, 2), lists)


@pytest.mark.parametrize(
    ("surrogate", "n_lists", "seed"),
    [("clipped_ramp", 30, 3), ("ramp", 30, 5), ("clipped_ramp", 8, 0), slow("ramp", 8, 1)],
)
def test_wherever_a_run_of_several_starts_is_stopped_it_goes_on_at_its_best_point(
    surrogate, n_lists, seed, tmp_path
):
    risk = ramp_risk(surrogate, n_lists, seed)
    solver = CCCP(1e-2, tol=1e-8)
    shown = []
    whole = solver.solve(risk, callback=lambda progress: shown.append(progress))

    def stop_after(n):
        calls = iter(range(n))
        return lambda _: next(calls, None) is None

    for share in (0.0, 0.2, 0.4, 0.6, 0.8):
        place = Checkpoint(tmp_path / str(share))
        stopped = solver.solve(risk, callback=stop_after(int(share * len(shown))), checkpoint=place)
        resumed = solver.solve(risk, checkpoint=place)
        assert stopped.status is Status.STOPPED and resumed.status is whole.status
        assert resumed.objective <= stopped.objective * (1 + 1e-12)
        assert resumed.criticality <= 1e-8 and len(resumed.starts) == 1
        assert resumed.data_passes < whole.data_passes


def test_a_run_that_is_stopped_again_and_again_comes_to_an_end(tmp_path):
    risk = ramp_risk("clipped_ramp", 30, 3)
    place = Checkpoint(tmp_path / "kept")
    objectives = [np.inf]
    status = Status.STOPPED
    while status is Status.STOPPED and len(objectives) < 200:
        result = CCCP(1e-2).solve(risk, callback=stop_at(2), checkpoint=place)
        assert result.objective <= objectives[-1] * (1 + 1e-12)
        objectives.append(result.objective)
        status = result.status
    assert status is Status.CRITICAL and len(objectives) > 3


WRONG = {
    "dual.positions": np.array([10**6]),
    "dual.coef": np.array([np.nan]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_dual_variables_are_refused(wrong, tmp_path):
    solver, risk = SOLVERS["ascent"]
    place = Checkpoint(tmp_path / "kept")
    solver.solve(risk, checkpoint=place, callback=stop_at(2))
    description, arrays = _FILE.read(place.path)
    arrays[wrong] = WRONG[wrong]
    place.path.write_bytes(_FILE.encoded(description, arrays))
    with pytest.raises(InputError, match="dual variables that were kept do not fit"):
        solver.solve(risk, checkpoint=place)


def test_at_the_interval_a_result_is_written_while_the_solve_goes_on(tmp_path):
    solver, risk = SOLVERS["bundle"]
    for interval, written in ((0.0, True), (1e9, False)):
        place = Checkpoint(tmp_path / str(interval), interval)
        there = []
        solver.solve(
            risk,
            checkpoint=place,
            callback=lambda _, place=place, there=there: there.append(place.path.exists()),
        )
        assert there[2] is written and place.path.exists()


@pytest.mark.parametrize(
    ("solver", "risk", "difference"),
    [
        (CuttingPlane(2e-3), make_risk(), r"alpha was 0\.001, is 0\.002"),
        (CuttingPlane(1e-3), make_risk(offset=1.0), "the data .* or k differs"),
        (CuttingPlane(1e-3), make_risk("avg"), "the surrogate or k differs"),
        (DualAscent(1e-3), make_risk(), "solver was 'CuttingPlane'"),
    ],
)
def test_results_of_other_problems_are_refused(solver, risk, difference, tmp_path, monkeypatch):
    place = Checkpoint(tmp_path / "kept")
    bundle = CuttingPlane(1e-3, tol=1e-2)
    rough = bundle.solve(make_risk(), checkpoint=place)
    before = place.path.read_bytes()
    with pytest.raises(InputError, match=f"of another run: .*{difference}.*delete .*kept to start"):
        solver.solve(risk, checkpoint=place)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "9.9")
        with pytest.raises(InputError, match=r"another run: version was '[^9]*', is '9\.9'"):
            bundle.solve(make_risk(), checkpoint=place)
    assert before == place.path.read_bytes()
    sharp = CuttingPlane(1e-3, tol=1e-8).solve(make_risk(), checkpoint=place)  # that may change
    assert sharp.gap <= 1e-8 < rough.gap


@pytest.mark.parametrize("solver", [SubgradientDescent(1e-2), GlobalRamp(0.1)], ids=str)
def test_solvers_that_would_begin_anew_take_none(solver, tmp_path):
    with pytest.raises(InputError, match="takes no checkpoint"):
        solver.solve(make_risk("ramp", n_features=2), checkpoint=Checkpoint(tmp_path / "kept"))


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        *(("w", np.zeros(shape)) for shape in ((), (4,), (5, 2))),
        *(("w", np.full(5, value)) for value in (np.nan, 1e300)),
        ("lipschitz_factor", np.zeros(3)),
        ("slopes", np.zeros((2, 4))),
        ("slopes", np.full((3, 5), np.nan)),
        *(("intercepts", np.full(3, value)) for value in (np.nan, 1e9)),
        ("blocks", np.array([0, 1, 99])),
        ("blocks", np.array([0, 1, -2])),
    ],
)
def test_results_with_a_right_checksum_and_wrong_entries_are_refused(entry, wrong, tmp_path):
    solver = CuttingPlane(1e-3, n_blocks=3)
    risk = make_risk()
    place = Checkpoint(tmp_path / "kept", 1e9)
    solver.solve(risk, checkpoint=place, callback=stop_at(1))
    description, arrays = _FILE.read(place.path)
    few_cuts = {name: arrays[name][:3] for name in ("slopes", "intercepts", "blocks")}
    place.path.write_bytes(_FILE.encoded(description, arrays | few_cuts | {entry: wrong}))
    with pytest.raises(InputError):
        solver.solve(risk, checkpoint=place)
    place.path.write_bytes(place.path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"or is damaged: .*; delete .* to start again"):
        solver.solve(risk, checkpoint=place)


def test_a_full_disk_costs_the_checkpoint_but_not_the_run(tmp_path, monkeypatch):
    solver, risk = SOLVERS["bundle"]
    place = Checkpoint(tmp_path / "kept", interval=0)
    solver.solve(risk, checkpoint=place, callback=stop_at(4))
    before = place.path.read_bytes()
    monkeypatch.setattr(atomic.os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.warns(UserWarning, match=r"No space left .* The run goes on") as warnings:
        result = solver.solve(risk, checkpoint=place)
    assert len(warnings) == 1 and result.converged and "No space left" in result.message
    assert before == place.path.read_bytes() and list(tmp_path.iterdir()) == [place.path]


@pytest.mark.parametrize("which", ["another", "the same"])
def test_two_runs_that_share_a_file_are_told(which, tmp_path):
    solver, risk = SOLVERS["bundle"]
    other = make_risk("avg") if which == "another" else risk
    path = tmp_path / "kept"
    results = []

    def at_the_same_time(progress):
        if progress.iteration == 2:
            path.unlink(missing_ok=True)  # as if both had begun before either wrote
            results.append(CuttingPlane(1e-3).solve(other, checkpoint=Checkpoint(path, 1e9)))

    with pytest.warns(UserWarning, match=rf"another run writes {path}: .* The run goes on") as said:
        result = solver.solve(risk, callback=at_the_same_time, checkpoint=Checkpoint(path, 0.0))
    assert len(said) == 1 and result.converged and "another run writes" in result.message
    (kept,) = results
    assert _FILE.read(path)[1]["w"].tolist() == kept.w.tolist()  # nothing of it is lost


def test_a_file_that_was_deleted_meanwhile_is_written_again(tmp_path):
    solver, risk = SOLVERS["bundle"]
    path = tmp_path / "kept"

    def delete(progress):
        path.unlink(missing_ok=True)

    assert solver.solve(risk, callback=delete, checkpoint=Checkpoint(path, 0.0)).converged
    assert path.exists()


def test_a_file_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    risk = make_risk()
    monkeypatch.setattr(risk, "with_blocks", lambda n: pytest.fail("work") if n else None)
    for path in (tmp_path, tmp_path / "file" / "inside", tmp_path / "nowhere" / "kept"):
        with pytest.raises(InputError, match="cannot write"):
            CuttingPlane(1e-2).solve(risk, checkpoint=Checkpoint(path))
    with pytest.raises(InputError, match="file is not a structsvm-papk checkpoint"):
        CuttingPlane(1e-2).solve(risk, checkpoint=Checkpoint(tmp_path / "file"))


@pytest.mark.parametrize(("name", "n_calls"), [("bundle", 4), ("bundle", 2), ("cccp", 90)])
def test_after_a_failure_of_the_oracle_the_run_goes_on(name, n_calls, tmp_path, monkeypatch):
    solver, risk = SOLVERS[name]
    scores = ListRisk.scores
    place = Checkpoint(tmp_path / "kept")

    def fail_after(n_calls):
        calls = iter(range(n_calls))

        def failing(self, w):
            if next(calls, None) is None:
                raise OracleFailure("the workers are gone")
            return scores(self, w)

        monkeypatch.setattr(ListRisk, "scores", failing)

    fail_after(0)
    with pytest.raises(OracleFailure):  # there is no point yet
        solver.solve(risk)
    fail_after(n_calls)
    broken = solver.solve(risk, checkpoint=place)
    assert broken.status is Status.FAILED and "workers are gone" in broken.message
    monkeypatch.undo()
    assert broken.lower_bound <= broken.objective
    value = solver.alpha / 2 * broken.w @ broken.w + risk(broken.w)[0]
    assert broken.objective == pytest.approx(value, rel=1e-9)
    whole = solver.solve(risk)
    resumed = solver.solve(risk, checkpoint=place)
    assert resumed.status is whole.status
    assert resumed.objective <= broken.objective
    if np.isfinite(whole.lower_bound):
        assert resumed.objective == pytest.approx(whole.objective, rel=1e-6)


# --- warm starts ------------------------------------------------------------------------------


def test_of_other_blocks_of_the_same_users_the_point_alone_is_taken():
    risk = EmpiricalRisk(make_surrogate("ts", 1), uneven(n_features=9))
    solver = CuttingPlane(1e-3, n_blocks=3)
    result = solver.solve(risk)
    again = CuttingPlane(1e-3, n_blocks=1).solve(risk, warm_start=result)
    assert "of other blocks: its point alone" in again.message
    assert again.objective == pytest.approx(result.objective, rel=2e-6)
    assert "other blocks" not in solver.solve(risk, warm_start=result).message


def test_an_oracle_without_a_fingerprint_is_known_by_its_object():
    class Plain:
        n_features = 5

        def __init__(self, risk):
            self.risk = risk

        def __call__(self, w):
            return self.risk(w)

    first = CuttingPlane(1e-2).solve(make_risk("avg", k=7))
    with pytest.raises(InputError, match="cuts are of another problem"):  # the same one at zero
        CuttingPlane(1e-2).solve(make_risk("pauc", k=7), warm_start=first)
    plain = Plain(make_risk("avg"))
    result = CuttingPlane(1e-2).solve(plain)
    again = CuttingPlane(1e-3).solve(plain, warm_start=result)
    assert again.status is Status.CONVERGED
    for other in (Plain(make_risk("max")), Plain(make_risk("avg"))):
        with pytest.raises(InputError, match=r"another problem.*known by its object only"):
            CuttingPlane(1e-2).solve(other, warm_start=result)
    with pytest.raises(InputError, match=r"another problem: the risk differs$"):
        CuttingPlane(1e-2, n_blocks=1).solve(make_risk("avg"), warm_start=result)
    with pytest.raises(InputError, match="fingerprint"):
        CuttingPlane(1e-2).solve(Plain(make_risk("avg")), checkpoint=Checkpoint("somewhere"))
