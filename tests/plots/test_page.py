import re

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run, run_json
from structsvm_papk import metrics
from structsvm_papk.metrics.significance import Evaluation
from structsvm_papk.plots.evaluation import evaluation_page
from structsvm_papk.plots.page import Column, Drawing, Section, page

pytestmark = pytest.mark.portable

pytest.importorskip("jinja2")


def rows(n_users=25, n=30):
    rng = np.random.default_rng(4)
    groups = np.array([f"<!--<script> {u:02d}" for u in np.repeat(np.arange(n_users), n)])
    labels = (rng.random(groups.size) < 0.25).astype(int)
    labels[:n] = 0
    scores = np.round(rng.normal(size=groups.size) + 1.2 * labels, 2)
    return scores, labels, groups


SCORES, LABELS, GROUPS = rows()
NAMES = ("pap@10", "auc", "ap", "ndcg@10", "precision@10")


def cells_of(text):
    """Every row of every table, as texts; drawings are empty."""
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        for row in re.findall(r"<tr>.*?</tr>", text, re.S)
    ]


def test_page_is_self_contained_and_holds_the_numbers():
    worse = metrics.evaluate(NAMES, -SCORES, LABELS, GROUPS)
    table = metrics.evaluate(NAMES, SCORES, LABELS, GROUPS)
    compared = metrics.compare(table, worse, n_resamples=99)
    evaluation = Evaluation(table, compared)
    text = evaluation_page(evaluation, "A & B", other=worse)
    assert "<script" not in text and "src=" not in text and "href=" not in text
    assert "A &amp; B" in text and "<b>" not in text
    found = cells_of(text)
    for name, row, pair in zip(NAMES, evaluation.overall, compared, strict=True):
        mean = [f"{row['value']:.4f}", f"{row['lower']:.4f} to {row['upper']:.4f}"]
        assert any(each[:3] == [name, *mean] for each in found)
        assert any(
            each[0] == name and each[3] == f"{pair.difference:.4f}" for each in found if each[4:]
        )
    used = table.used("pap@10")
    counts = np.histogram(table["pap@10"][used], np.linspace(0, 1, 11))[0]
    shown = dict(
        re.findall(r"<th scope='row'>(0\.\d\d to \d\.\d\d)</th>\s*<td[^>]*>(\d+)</td>", text)
    )
    assert [shown[f"{b / 10:.2f} to {(b + 1) / 10:.2f}"] for b in range(10)] == [*map(str, counts)]
    apart = (table["pap@10"] - worse["pap@10"])[used]
    assert f"above 0 for {(apart > 0).sum()} users, below for {(apart < 0).sum()}" in text


def test_a_run_has_queries_and_documents(tmp_path, capsys):
    lines = [f"q{q} Q0 d{d} 0 {d % 7 - d / 9} x" for q in range(12) for d in range(9)]
    judged = [f"q{q} 0 d{(q + d) % 11} {d % 3}" for q in range(12) for d in range(6)]
    (tmp_path / "a.run").write_text("\n".join(lines))
    (tmp_path / "qrels").write_text("\n".join(judged))
    written = tmp_path / "page.html"
    assert (
        run("evaluate", tmp_path / "a.run", "--qrels", tmp_path / "qrels", "--html", written) == 0
    )
    text = written.read_text(encoding="utf-8")
    assert "12 queries" in text and "relevant documents" in text and "queries used" in text
    assert not re.search(r"\busers\b|\bitems\b", text.partition("What the metrics mean")[0])


def test_intervals_are_those_of_the_terminal(tmp_path, capsys):
    """Method and level that are asked for, number by number."""
    path, written = tmp_path / "rows.csv", tmp_path / "page.html"
    columns = {"user": GROUPS, "label": LABELS, "score": SCORES}
    pd.DataFrame(columns).to_csv(path, index=False)
    command = ["evaluate", path, "-m", "auc,pap@3", "--html", written]
    for method, level in (("kl", 0.9), ("none", 0.9)):
        options = ["--interval", method, "--level", level]
        _, numbers = run_json(capsys, *command, *options)
        if method == "kl":
            table = metrics.evaluate("auc", SCORES, LABELS, GROUPS)
            made = metrics.interval(table, "auc", method=method, level=level)
            assert numbers["metrics"][0]["lower"] == made.lower
        text = written.read_text(encoding="utf-8")
        heading = "interval" if method == "none" else f"{100 * level:g}% interval, {method}"
        assert f">{heading}</th>" in text
        for row in numbers["metrics"]:
            ends = "-" if row["lower"] is None else f"{row['lower']:.4f} to {row['upper']:.4f}"
            assert any(each[:1] == [row["metric"]] and each[2] == ends for each in cells_of(text))
        assert run(*command, *options) == 0
        assert heading in capsys.readouterr().out


def test_drawings_of_a_table_share_an_axis():
    rows = [["a", Drawing(1.0, -1.0, 3.0)], ["b", Drawing(2.0)], ["c", None]]
    section = Section("", "", [Column("x"), Column("", with_zero=True)], rows).placed()
    first, second = section.rows[0][1], section.rows[1][1]
    assert (first.lower, first.value, first.upper, first.zero) == (0, 50, 100, 25)
    assert (second.lower, second.value, second.upper) == (75, 75, 75)
    bars = Section(
        "", "", [Column("x")], [[Drawing(2.0, is_bar=True)], [Drawing(-2.0, is_bar=True)]]
    )
    assert [(row[0].value, row[0].zero) for row in bars.placed().rows] == [(100, 50), (0, 50)]
    text = page("t", [bars])
    assert "x='50.0' width='50.0'" in text and "x='0.0' width='50.0'" in text
