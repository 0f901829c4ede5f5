import base64
import gzip
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from helpers.commands import run, run_json
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.ranked_lists import build
from structsvm_papk.plots import page as report_page

pytestmark = pytest.mark.portable

pytest.importorskip("jinja2")
pytest.importorskip("plotly")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1200,2600",
)  # fmt: skip


def rows(n_users=25, n=30):
    rng = np.random.default_rng(4)
    groups = np.array([f"<!--<script> {u:02d}" for u in np.repeat(np.arange(n_users), n)])
    labels = (rng.random(groups.size) < 0.25).astype(int)
    labels[:n] = 0
    scores = np.round(rng.normal(size=groups.size) + 1.2 * labels, 2)
    return scores, labels, groups


SCORES, LABELS, GROUPS = rows()
NAMES = ("pap@10", "auc", "ap", "ndcg@10", "precision@10")


def page(scores=SCORES, labels=LABELS, groups=GROUPS, names=NAMES, shown=None, compared=(), **how):
    table = metrics.evaluate(names, scores, labels, groups, **how)
    pooled = report_page.report(scores, labels)
    evaluation = report_page.Evaluation(table, pooled, compared)
    return report_page.page(evaluation, build(scores, labels, groups), **(shown or {}))


def payload_of(text):
    return json.loads(re.search(r'id="payload">(.*?)</script>', text, re.DOTALL)[1])


def test_precision_and_recall_enclose_pap():
    meaning = dict(payload_of(page())["meanings"])["pap@10"]
    low, high = map(float, re.search(r"leaves (\d\.\d+) to (\d\.\d+)\.$", meaning).groups())
    table = metrics.evaluate(["pap@10", "precision@10"], SCORES, LABELS, GROUPS)
    assert low < table.mean("pap@10") < high < 1
    used = table.used("pap@10")
    precision = table["precision@10"][used]
    recall = precision * 10 / np.minimum(table.n_pos[used], 10)
    assert low == pytest.approx((precision * recall).mean(), abs=6e-4)


def test_page_is_self_contained_and_holds_the_numbers():
    tier = np.where(GROUPS < "<!--<script> 10", "new", "old")
    worse = metrics.evaluate(NAMES[:2], -SCORES, LABELS, GROUPS)
    table = metrics.evaluate(NAMES[:2], SCORES, LABELS, GROUPS)
    compared = metrics.compare(table, worse, n_resamples=99)
    shown = {"title": "A & B", "largest_k": 12, "other": worse}
    text = page(segments={"tier": tier}, shown=shown, compared=compared)
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)
    assert "<!--" not in text  # in an id it would comment out the end of the data's element
    assert len(text) < 3e6
    packed = re.search(r'id="plotly">(.*?)</script>', text, re.DOTALL)[1]
    assert b"plotly.js v" in gzip.decompress(base64.b64decode(packed))[:500]
    payload = payload_of(text)
    assert payload["auroc"] == pytest.approx(roc_auc_score(LABELS, SCORES), abs=1e-12)
    assert payload["ap"] == pytest.approx(average_precision_score(LABELS, SCORES), abs=1e-12)
    assert sum(r["own"] for r in payload["rates"]) == 1
    for r in payload["rates"]:
        share = r["rate"] / LABELS.mean(), (1 - r["rate"]) / (1 - LABELS.mean())
        weights = np.where(LABELS == 1, *share)
        expected = average_precision_score(LABELS, SCORES, sample_weight=weights)
        assert r["ap"] == pytest.approx(expected, abs=1e-12)
    assert payload["summary"]["rows"][0][3:] == ["24 of 25", "1 with no positives, 2 with ties"]
    assert len(payload["segments"]["rows"]) == 10
    for k in (1, 12):
        mean = metrics.evaluate([f"pap@{k}"], SCORES, LABELS, GROUPS).mean(f"pap@{k}")
        assert payload["mean_pap"][k - 1]["value"] == mean
    assert [row[0] for row in payload["comparison"]["rows"]] == ["pap@10", "auc"]
    apart = (table["pap@10"] - worse["pap@10"])[table.used("pap@10")]
    differences = payload["differences"]
    assert differences["mean"] == pytest.approx(compared[0].difference, abs=1e-12)
    for center, users in zip(differences["centers"], differences["users"], strict=True):
        assert (np.abs(apart - center) < differences["width"] / 2 - 1e-9).sum() <= users
    assert sum(differences["users"]) == apart.size == 24
    assert differences["note"].startswith(f"Difference: above 0 for {(apart > 0).sum()} users,")


def test_distribution_of_the_users():
    payload = payload_of(page(names=["auc", "pap@3"]))
    shown = payload["distribution"]
    values = metrics.pap_at_k(SCORES, LABELS, 3, GROUPS)
    values = values[~np.isnan(values)]
    assert shown["axis"] == "pap@3" and shown["mean"] == pytest.approx(values.mean())
    assert shown["users"] == np.histogram(values, np.linspace(0, 1, 21))[0].tolist()
    assert f"24 users, {(values == 1).sum()} at 1" in shown["note"]
    assert payload["differences"] is payload["comparison"] is payload["segments"] is None
    pooled = payload_of(page(mean="pooled"))["distribution"]
    assert pooled["mean"] is None and pooled["title"] == "pap@10 of the users"


def test_curve_is_thinned_with_exact_counts():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=30_000)
    labels = (rng.random(30_000) < 0.01).astype(int)
    curve = payload_of(page(scores, labels, None))["curve"]
    assert len(curve["tp"]) <= 1502
    assert (curve["tp"][0], curve["fp"][0]) == (0, 0)
    assert (curve["tp"][-1], curve["fp"][-1]) == (labels.sum(), 30_000 - labels.sum())
    for i in (5, 300, 700):
        called = scores >= curve["thresholds"][i]
        assert curve["tp"][i] == labels[called].sum()
        assert curve["fp"][i] == called.sum() - labels[called].sum()


def test_intervals_are_those_of_the_terminal(tmp_path, capsys):
    """Method and level that are asked for, number by number."""
    path, written = tmp_path / "rows.csv", tmp_path / "page.html"
    tier = GROUPS < "<!--<script> 10"
    columns = {"user": GROUPS, "tier": tier, "label": LABELS, "score": SCORES}
    pd.DataFrame(columns).to_csv(path, index=False)
    command = ["evaluate", path, "-m", "auc,pap@3", "--by", "tier", "--html", written]
    for method, level in (("kl", 0.9), ("none", 0.9)):
        options = ["--interval", method, "--level", level]
        _, numbers = run_json(capsys, *command, *options)
        if method == "kl":
            table = metrics.evaluate("auc", SCORES, LABELS, GROUPS)
            made = metrics.interval(table, "auc", method=method, level=level)
            assert numbers["metrics"][0]["lower"] == made.lower
        payload = payload_of(written.read_text(encoding="utf-8"))
        heading = "interval" if method == "none" else f"{100 * level:g}% interval, {method}"
        assert payload["summary"]["head"][2] == payload["segments"]["head"][5] == heading
        for part, column, rows in (("summary", 2, "metrics"), ("segments", 5, "segments")):
            assert [row[column] for row in payload[part]["rows"]] == [
                "–" if row["lower"] is None else f"{row['lower']:.4f} to {row['upper']:.4f}"
                for row in numbers[rows]
            ]
        assert run(*command, *options) == 0
        assert heading in capsys.readouterr().out


def test_numbers_of_one_user_are_of_the_whole_list():
    """Three positives among the worst of 1,000 items, where only the best 400 are drawn."""
    scores = np.round(np.random.default_rng(1).normal(size=2000), 1)
    labels = np.zeros(2000, dtype=int)
    labels[np.argsort(scores[:1000])[[5, 300, 900]]] = 1
    labels[1000:1100] = 1
    payload = payload_of(page(scores, labels, np.repeat([7, 8], 1000), shown={"n_users": 1}))
    (user,) = payload["users"]
    note = "1 of 2 users can be chosen: the first of 2 that have positives and negatives"
    assert payload["users_note"] == note
    assert (len(user["labels"]), sum(user["labels"])) == (400, 1)
    assert (user["n_pos"], user["n_neg"]) == (3, 997)
    order = np.sign(scores[:1000][labels[:1000] == 1][:, None] - scores[:1000][labels[:1000] == 0])
    for name, sign in (("concordant", 1), ("discordant", -1), ("tied", 0)):
        assert user[name] == (order == sign).sum() > 0
    assert user["auc"] == pytest.approx(roc_auc_score(labels[:1000], scores[:1000]), abs=1e-12)


def test_the_articles_four_models_as_recomputed():
    random = np.random.RandomState(42)
    labels = random.binomial(1, 0.03, 10_000)
    models = [random.rand(10_000)] + [d * labels + random.randn(10_000) for d in (1, 2, 3)]
    reports = [report_page.report(scores, labels) for scores in (*models, np.round(models[1], 1))]
    for report, scores in zip(reports, (*models, np.round(models[1], 1)), strict=True):
        expected = roc_auc_score(labels, scores), average_precision_score(labels, scores)
        assert (report.auroc, report.average_precision) == pytest.approx(expected, abs=1e-12)
    assert reports[3].lift == pytest.approx(0.801658920765 / 0.0264, abs=1e-9)
    assert [len(report.warnings) for report in reports] == [1, 0, 0, 1, 0]
    assert "hardly better than random" in str(reports[0]) and "leak" in str(reports[3])
    constant = report_page.report(np.ones(100), np.repeat([1, 0], [2, 98]))
    assert constant.average_precision == constant.positive_rate == 0.02
    assert (constant.auroc, constant.p_value) == (0.5, 1.0)
    with pytest.raises(InputError, match="0 positives and 2 negatives"):
        report_page.report([1.0, 2.0], [0, 0])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    if not (driver and binary):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    running = webdriver.Chrome(options=options, service=service)
    path = tmp_path_factory.mktemp("page") / "out.html"
    path.write_text(page(names=["pap@5", *NAMES[1:]], shown={"largest_k": 15}))
    running.get(path.as_uri())
    wait_until_ready(running)
    yield running
    running.quit()


def wait_until_ready(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(
        lambda it: it.find_element("tag name", "body").get_attribute("data-ready") == "yes"
    )


def read(browser, name):
    return browser.find_element("id", name).text


def number(browser, name):
    return float(read(browser, name))


def slide(browser, name, key, times=1):
    from selenium.webdriver.common.keys import Keys

    slider = browser.find_element("id", name)
    for _ in range(times):
        slider.send_keys(getattr(Keys, key))
    return int(slider.get_attribute("value"))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
class TestInBrowser:
    def test_loads_without_errors_or_network(self, browser):
        assert browser.find_element("tag name", "body").get_attribute("data-ready") == "yes"
        assert browser.get_log("browser") == []
        events = [
            json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
        ]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        urls = [p["request"]["url"] for p in sent if p["documentURL"].startswith("file:")]
        assert urls
        outside = [url for url in urls if not url.startswith(("file:", "data:", "blob:"))]
        assert outside == []
        assert len(browser.find_elements("css selector", ".plot .main-svg")) >= 7

    def test_every_metric_links_to_its_meaning_and_nothing_is_wider_than_a_phone(self, browser):
        links = browser.find_elements("css selector", "#summary a")
        targets = [link.get_attribute("href").partition("#")[2] for link in links]
        assert [read(browser, target) for target in targets] == [link.text for link in links]
        assert len(links) == 5
        for width in (390, 1280):
            size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.refresh()
            wait_until_ready(browser)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_threshold_slider_moves_the_confusion_matrix(self, browser):
        seen = []
        for key, times in (("HOME", 1), ("ARROW_RIGHT", 60), ("PAGE_UP", 2), ("END", 1)):
            slide(browser, "threshold", key, times)
            told = read(browser, "threshold-value")
            called = np.zeros(SCORES.size, bool) if "above" in told else float(told) <= SCORES
            expected = [
                (LABELS[called] == 1).sum(), (LABELS[~called] == 1).sum(),
                (LABELS[called] == 0).sum(), (LABELS[~called] == 0).sum(),
            ]  # fmt: skip
            assert [number(browser, name) for name in ("tp", "fn", "fp", "tn")] == expected
            recall = expected[0] / LABELS.sum()
            assert number(browser, "tpr") == pytest.approx(recall, abs=5.1e-5)
            dot = browser.execute_script("return document.getElementById('pr').data[2].x[0]")
            assert dot == pytest.approx(recall)
            seen.append(recall)
        assert seen == sorted(seen)
        assert (seen[0], seen[-1]) == (0.0, 1.0)

    def test_positive_rate_slider_lowers_auprc_only(self, browser):
        auroc = number(browser, "auroc")
        own = number(browser, "ap")
        assert own == pytest.approx(average_precision_score(LABELS, SCORES), abs=5.1e-5)
        slide(browser, "rate", "HOME")
        assert number(browser, "auroc") == auroc
        assert number(browser, "ap") < own / 3
        assert number(browser, "baseline") == 0.001
        weights = np.where(LABELS == 1, 0.001 / LABELS.mean(), 0.999 / (1 - LABELS.mean()))
        reweighted = average_precision_score(LABELS, SCORES, sample_weight=weights)
        assert number(browser, "ap") == pytest.approx(reweighted, abs=5.1e-5)

    def test_k_slider_shows_what_counts(self, browser):
        slide(browser, "k", "HOME")
        for times in (0, 4, 10):
            k = slide(browser, "k", "ARROW_RIGHT", times)
            mine = GROUPS[30] == GROUPS
            table = metrics.evaluate([f"pap@{k}"], SCORES, LABELS, GROUPS)
            assert read(browser, "k-value") == str(k)
            assert number(browser, "user-pap") == pytest.approx(table.values[1, 0], abs=5.1e-5)
            assert number(browser, "mean-pap") == pytest.approx(table.mean(f"pap@{k}"), abs=5.1e-5)
            opacity = browser.execute_script(
                "return document.getElementById('strip').data[0].marker.opacity"
            )
            assert opacity.count(1) == min(k, LABELS[mine].sum()) + min(k, (1 - LABELS[mine]).sum())

    def test_pairs_of_the_chosen_user(self, browser):
        from selenium.webdriver.support.select import Select

        choice = Select(browser.find_element("id", "user"))
        assert choice.options[0].text == "<!--<script> 01"
        assert read(browser, "users-note") == "24 of 25 users can be chosen"
        assert read(browser, "user-drawn") == ""
        for at in (3, 0):
            choice.select_by_index(at)
            mine = choice.options[at].text == GROUPS
            pos, neg = SCORES[mine][LABELS[mine] == 1], SCORES[mine][LABELS[mine] == 0]
            signs = np.sign(pos[:, None] - neg)
            found = [number(browser, name) for name in ("concordant", "discordant", "tied")]
            assert found == [(signs == 1).sum(), (signs == -1).sum(), (signs == 0).sum()]
            area = roc_auc_score(LABELS[mine], SCORES[mine])
            assert number(browser, "user-auc") == pytest.approx(area, abs=5.1e-5)
