import warnings

import numpy as np
import pytest

from helpers.marks import slow
from helpers.problems import ranking_data, uneven
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files import atomic as outputs
from structsvm_papk.files import checkpoint
from structsvm_papk.files.checkpoint import _FILE, Checkpoint, CheckpointWarning
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.result import Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate


def make_risk(name="ts", n_users=12, k=2, offset=0.0, dtype=float, n_features=5):
    data = ranking_data(n_users, 20, n_features)
    X = (data.X[data.rows] + offset).astype(dtype)
    return EmpiricalRisk(make_surrogate(name, k), RankingData(X, data.labels, data.indptr))


SOLVERS = {
    "bundle": (CuttingPlane(1e-3), make_risk()),
    "one list": (CuttingPlane(1e-3), make_risk("max", n_users=1)),
    "line_search": (CuttingPlane(1e-3, method="line_search"), make_risk()),
    "one_slack": (CuttingPlane(1e-2, method="one_slack"), make_risk()),
    "large offsets": (CuttingPlane(1e-3), make_risk(offset=1e7)),
    "float32": (CuttingPlane(1e-3, method="line_search"), make_risk(offset=1e4, dtype=np.float32)),
    "ascent": (DualAscent(1e-2), make_risk(n_users=6)),
    "descent, best": (SubgradientDescent(1e-2, max_iter=40), make_risk()),
    "descent, average": (SubgradientDescent(1e-2, max_iter=40, keep="average"), make_risk()),
    "global": (GlobalRamp(0.1), make_risk("ramp", n_features=2)),
    "cccp": (CCCP(1e-2), make_risk("clipped_ramp")),
    "cccp, race": (CCCP(1e-2, tol=1e-4), make_risk("clipped_ramp", n_users=24)),
    "cccp, continuation": (CCCP(1e-2, continuation=(10.0, 3.0)), make_risk("clipped_ramp", k=3)),
}
LONG = ("one_slack", "cccp", "cccp, continuation")  # a second each, on paths that others take too
NAMES = [slow(name) if name in LONG else name for name in SOLVERS]


def contents(folder):
    return {path: path.read_bytes() for path in folder.iterdir()}


def stop_at(iteration, how):
    def callback(progress):
        if progress.iteration == iteration:
            return how()
        return False

    return callback


def raising(error):
    def how(*_, **__):
        raise error

    return how


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_run_goes_on_to_where_it_would_have_ended_and_a_finished_one_returns(
    name, tmp_path
):
    solver, risk = SOLVERS[name]
    whole = solver.solve(risk)
    place = Checkpoint(tmp_path)
    seen = []
    n = max(2, whole.n_iter // 3)
    how = raising(KeyboardInterrupt) if n % 2 else (lambda: True)
    stopped = solver.solve(risk, callback=stop_at(n, how), checkpoint=place)
    assert stopped.status in (Status.STOPPED, Status.INTERRUPTED)
    resumed = solver.solve(risk, callback=seen.append, checkpoint=place)
    assert resumed.status is whole.status
    assert resumed.objective <= stopped.objective and not resumed.extra
    certified = np.isfinite(whole.lower_bound)
    if certified:
        assert resumed.objective == pytest.approx(whole.objective, rel=1e-6)
        assert seen[0].lower_bound >= stopped.lower_bound - 1e-6  # made anew from the cuts
    else:
        assert getattr(resumed, "criticality", 0.0) <= getattr(solver, "tol", 0.0)
    kept = seen[0].iteration - 1
    assert kept in (n - 1, n)
    assert resumed.history[:kept] == stopped.history[:kept]
    passes = resumed.curve("data_passes")
    assert (np.diff(resumed.curve("seconds")) > 0).all()
    if name == "global":  # rounds bound boxes; only some search for a better point
        assert (np.diff(resumed.curve("n_boxes")) > 0).all()
        assert resumed.n_iter == whole.n_iter  # the boxes were saved, too
    else:
        assert (np.diff(passes)[:-1] > 0).all() and passes[-1] >= passes[-2]  # or the bound does
    again = solver.solve(risk, checkpoint=place)
    assert again.status is resumed.status
    assert again.history[: resumed.n_iter] == resumed.history
    assert again.n_iter <= resumed.n_iter + (0 if certified else 5)
    assert again.lower_bound <= again.objective <= resumed.objective * (1 + 1e-12)


@pytest.mark.parametrize(
    ("solver", "risk", "difference"),
    [
        (CuttingPlane(2e-3), make_risk(), r"alpha was 0\.001, is 0\.002"),
        (CuttingPlane(1e-3), make_risk(offset=1.0), "the data, the surrogate or k differs"),
        (CuttingPlane(1e-3), make_risk("avg"), "the data, the surrogate or k differs"),
        (CuttingPlane(1e-3, n_blocks=3), make_risk(), "n_blocks was"),
        (CuttingPlane(1e-3, method="one_slack"), make_risk(), "method was 'bundle'"),
        (SubgradientDescent(1e-3), make_risk(), "solver was 'CuttingPlane'"),
    ],
)
def test_checkpoints_of_other_runs_are_refused(solver, risk, difference, tmp_path, monkeypatch):
    place = Checkpoint(tmp_path)
    bundle = CuttingPlane(1e-3, tol=1e-2)
    (tmp_path / ".result.checkpoint.x1y2.tmp").write_bytes(b"half a re")  # of a killed process
    (tmp_path / ".else.tmp").touch()
    rough = bundle.solve(make_risk(), checkpoint=place)
    before = contents(tmp_path)
    assert [path.name for path in sorted(before)] == [".else.tmp", "lock", "result.checkpoint"]
    with pytest.raises(InputError, match=f"another run: .*{difference}"):
        solver.solve(risk, checkpoint=place)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "9.9")
        with pytest.raises(InputError, match=r"another run: version was '[^9]*', is '9\.9'"):
            bundle.solve(make_risk(), checkpoint=place)
    assert before == contents(tmp_path)
    sharp = CuttingPlane(1e-3, tol=1e-8).solve(make_risk(), checkpoint=place)  # that may change
    assert sharp.gap <= 1e-8 < rough.gap
    assert sharp.history[: rough.n_iter] == rough.history


@pytest.mark.parametrize("name", ["bundle", "descent, best", "cccp"])
def test_a_folder_in_use_is_refused_until_the_run_has_ended(name, tmp_path):
    solver, risk = SOLVERS[name]

    def another(_):
        with pytest.raises(InputError, match="in use by another run"):
            solver.solve(risk, checkpoint=Checkpoint(tmp_path))
        return True

    stopped = solver.solve(risk, checkpoint=Checkpoint(tmp_path), callback=another)
    assert stopped.status is Status.STOPPED
    with pytest.raises(ZeroDivisionError) as broken:
        solver.solve(risk, checkpoint=Checkpoint(tmp_path), callback=lambda _: 1 / 0)
    assert solver.solve(risk, checkpoint=Checkpoint(tmp_path)).n_iter > 1
    assert broken.traceback  # the frames of the broken run are still there, and hold nothing


def test_where_the_system_has_no_locks_runs_go_on_and_parts_have_safe_names(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.fcntl, "flock", raising(OSError(95, "Operation not supported")))
    solver, risk = SOLVERS["bundle"]
    part = Checkpoint(tmp_path, 5.0).part("../avg: eta = 0.1")
    assert part.folder == tmp_path / "avg_eta_0.1" and part.interval == 5.0
    assert solver.solve(risk, checkpoint=part).converged


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        *(("w", np.zeros(shape)) for shape in ((), (4,), (5, 2))),
        *(("w", np.full(5, value)) for value in (np.nan, 1e300)),
        ("objective", np.zeros(3)),
        ("history", np.zeros((2, 3))),
        ("slopes", np.zeros((2, 4))),
        ("slopes", np.full((3, 5), np.nan)),
        ("intercepts", np.full(3, 1e9)),
        ("blocks", np.array([0, 1, 99])),
    ],
)
def test_results_with_a_right_checksum_and_wrong_entries_are_refused(entry, wrong, tmp_path):
    solver = CuttingPlane(1e-3, n_blocks=3)
    risk = make_risk()
    place = Checkpoint(tmp_path, 1e9)
    solver.solve(risk, checkpoint=place, callback=stop_at(1, lambda: True))
    (path,) = tmp_path.glob("*.checkpoint")
    description, arrays = _FILE.read(path)
    few_cuts = {name: arrays[name][:3] for name in ("slopes", "intercepts", "blocks")}
    path.write_bytes(_FILE.encoded(description, arrays | few_cuts | {entry: wrong}))
    with pytest.raises(InputError):
        solver.solve(risk, checkpoint=place)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"checksum does not match. Delete the folder to start"):
        solver.solve(risk, checkpoint=place)


@pytest.mark.parametrize("name", ["avg", "deep_avg"])
def test_an_interrupt_while_a_start_is_made_leaves_no_half_made_start(name, monkeypatch):
    risk = make_risk("clipped_ramp")
    calls = []

    def interrupted(self, w):
        calls.append(w)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return cuts(self, w)

    cuts = ListRisk.cuts
    monkeypatch.setattr(ListRisk, "cuts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CCCP(1e-2, starts=("zero", name)).solve(risk)


@pytest.mark.parametrize("name", ["cccp", "descent, average"])
def test_without_a_certificate_another_start_is_another_run(name, tmp_path):
    solver, risk = SOLVERS[name]
    starts = np.random.default_rng(0).normal(size=(2, risk.n_features))
    first = solver.solve(risk, starts[0], checkpoint=Checkpoint(tmp_path, 1e9))
    again = solver.solve(risk, starts[0], checkpoint=Checkpoint(tmp_path, 1e9))
    np.testing.assert_allclose(again.w, first.w, atol=1e-6)
    for start in (starts[1], None):
        with pytest.raises(InputError, match=r"another run: starts? was"):
            solver.solve(risk, start, checkpoint=Checkpoint(tmp_path, 1e9))


def test_a_full_disk_costs_the_checkpoint_but_not_the_run(tmp_path, monkeypatch):
    solver, risk = SOLVERS["bundle"]
    place = Checkpoint(tmp_path, interval=0)
    solver.solve(risk, checkpoint=place, callback=stop_at(4, lambda: True))
    before = contents(tmp_path)

    monkeypatch.setattr(outputs.os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.warns(CheckpointWarning, match=r"No space left .* The run goes on"):
        result = solver.solve(risk, checkpoint=place)
    assert result.converged and "No space left" in result.message
    assert before == contents(tmp_path)
    sentences = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver.solve(risk, checkpoint=Checkpoint(tmp_path, 0, sentences.append))
    assert len(sentences) == 2
    assert "resumed" in sentences[0] and "No space left" in sentences[1]


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    risk = make_risk()
    monkeypatch.setattr(risk, "with_blocks", lambda n: pytest.fail("work") if n else None)
    for folder in (tmp_path / "file", tmp_path / "file" / "sub"):
        with pytest.raises(InputError, match="cannot write"):
            SubgradientDescent(1e-2).solve(risk, checkpoint=Checkpoint(folder))
    monkeypatch.setattr(outputs.tempfile, "mkstemp", raising(OSError(13, "Permission denied")))
    with pytest.raises(InputError, match="Permission denied"):
        SubgradientDescent(1e-2).solve(risk, checkpoint=Checkpoint(tmp_path / "new"))
    assert not list((tmp_path / "new").glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("name", "n_calls"),
    [
        *[("bundle", 4), ("line_search", 6), ("cccp", 90)],
        *[slow("line_search", 2), slow("descent, best", 10)],
    ],
)
def test_after_a_failure_of_the_oracle_the_run_goes_on(name, n_calls, tmp_path, monkeypatch):
    solver, risk = SOLVERS[name]
    scores = ListRisk.scores
    place = Checkpoint(tmp_path)

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


class SplitElsewhere(EmpiricalRisk):
    """Has blocks of single users, but for the last one."""

    def with_blocks(self, n_blocks):
        return ListRisk(self.surrogate, self.data, np.append(np.arange(n_blocks), self.n_users))


@pytest.mark.recovery
def test_as_many_blocks_of_other_users_are_refused(tmp_path):
    data = uneven(n_features=9)
    risks = [
        EmpiricalRisk(make_surrogate("ts", 1), data),
        SplitElsewhere(make_surrogate("ts", 1), data),
    ]
    one, other = (risk.with_blocks(3) for risk in risks)
    assert one.fingerprint() == other.fingerprint() and one.layout != other.layout
    solver = CuttingPlane(1e-3, n_blocks=3)
    result = solver.solve(risks[0])
    with pytest.raises(InputError, match="blocks differ"):
        solver.solve(risks[1], np.zeros(9), warm_start=result)
    CuttingPlane(1e-3, n_blocks=3, max_iter=3).solve(risks[0], checkpoint=Checkpoint(tmp_path))
    with pytest.raises(InputError, match="another run: layout"):
        solver.solve(risks[1], checkpoint=Checkpoint(tmp_path))


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
    with pytest.raises(InputError, match=r"another problem: the risk or its blocks differ$"):
        CuttingPlane(1e-2, n_blocks=1).solve(make_risk("avg"), warm_start=result)
    with pytest.raises(InputError, match="fingerprint"):
        CuttingPlane(1e-2).solve(Plain(make_risk("avg")), checkpoint=Checkpoint("somewhere"))
