"""The checks as one self-contained HTML page: no scripts, no outside resources.

Counterexamples are drawn as ranked lists and as points on a line; everything is inline.
"""

from html import escape
from math import inf, isfinite, log10

from structsvm_papk.propositions.lists import TOL

STYLE = """
:root { --ink:#1d2430; --soft:#5c6675; --line:#d9dee6; --paper:#fff; --wash:#f5f7fa;
  --pos:#1b7f5c; --neg:#b5532a; --good:#17694c; --bad:#a32036; --accent:#1b5e9b; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6eaf0; --soft:#9aa5b4; --line:#39424f;
  --paper:#171b21; --wash:#20262e; --pos:#4cc79b; --neg:#ec9a6f; --good:#5fd3a6; --bad:#ff8a9a;
  --accent:#79b8f2; } }
* { box-sizing:border-box; }
body { margin:0; color:var(--ink); background:var(--paper); line-height:1.5;
  font:16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width:62rem; margin:0 auto; padding:1.5rem 1rem 4rem; }
h1 { font-size:1.6rem; line-height:1.25; margin:.5rem 0; }
h2 { font-size:1.2rem; margin:2.5rem 0 .75rem; }
h3 { font-size:1.05rem; margin:0; }
a { color:var(--accent); }
.soft { color:var(--soft); }
.numbers { display:flex; flex-wrap:wrap; gap:.75rem; margin:1.25rem 0; padding:0; list-style:none; }
.numbers li { flex:1 1 9rem; background:var(--wash); border-radius:.5rem; padding:.6rem .9rem; }
.numbers b { display:block; font-size:1.5rem; font-variant-numeric:tabular-nums; }
table { border-collapse:collapse; width:100%; font-size:.92rem; }
th, td { text-align:left; padding:.45rem .6rem; border-bottom:1px solid var(--line);
  vertical-align:top; }
th { color:var(--soft); font-weight:600; }
td.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
code, .formula { font-family:ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size:.9em; }
.formula { display:block; background:var(--wash); border-left:3px solid var(--line);
  padding:.4rem .7rem; margin:.6rem 0; overflow-wrap:anywhere; }
.badge { display:inline-block; font-weight:600; font-size:.82rem; padding:.1rem .55rem;
  border-radius:1rem; border:1px solid currentColor; white-space:nowrap; }
.holds { color:var(--good); } .counterexample { color:var(--bad); }
section.check { border:1px solid var(--line); border-radius:.6rem; padding:1rem; margin:1rem 0; }
section.check header { display:flex; flex-wrap:wrap; gap:.5rem; align-items:center;
  justify-content:space-between; }
section.check p { margin:.5rem 0; }
dl { display:grid; grid-template-columns:max-content 1fr; gap:.15rem .9rem; margin:.6rem 0;
  font-size:.92rem; }
dt { color:var(--soft); } dd { margin:0; overflow-wrap:anywhere; }
.example { background:var(--wash); border-radius:.5rem; padding:.8rem; margin-top:.8rem; }
.lists { display:flex; flex-wrap:wrap; gap:1rem; }
.lists > div { flex:1 1 15rem; min-width:0; }
ol.ranked { list-style:none; margin:.4rem 0; padding:0; }
ol.ranked li { display:flex; align-items:center; gap:.6rem; padding:.15rem 0; }
ol.ranked .rank { width:1.4rem; text-align:right; color:var(--soft); font-size:.85rem; }
ol.ranked .item { min-width:6.2rem; border-radius:.35rem; padding:.1rem .5rem; color:#fff;
  font-size:.88rem; }
ol.ranked .p { background:#1b7f5c; } ol.ranked .q { background:#b5532a; }
ol.ranked .score { font-variant-numeric:tabular-nums; }
ol.ranked .cut { color:var(--soft); font-size:.82rem; }
.wide { overflow-x:auto; }
.plot .row { display:grid; grid-template-columns:15rem 1fr; align-items:center; gap:.8rem;
  font-size:.85rem; }
.plot .row a { text-align:right; overflow-wrap:anywhere; }
.track, .ticks { position:relative; height:1.35rem; margin:0 1rem 0 .5rem; }
.track { border-bottom:1px solid var(--line); }
.track .rounding { position:absolute; top:0; bottom:0; border-left:1px dashed var(--soft); }
.track .dot { position:absolute; top:.4rem; width:.65rem; height:.65rem; margin-left:-.32rem;
  border-radius:50%; background:currentColor; }
.ticks span { position:absolute; transform:translateX(-50%); color:var(--soft); font-size:.8rem; }
svg { display:block; width:100%; height:auto; }
svg text { fill:var(--soft); font:12px system-ui, sans-serif; }
@media (max-width:40rem) {
  table.verdicts thead { display:none; }
  table.verdicts tr { display:block; padding:.6rem 0; border-bottom:1px solid var(--line); }
  table.verdicts td { display:block; border:0; padding:.1rem 0; text-align:left; }
  table.verdicts td.n::before { content:attr(data-label) ": "; color:var(--soft); }
  .plot .row { grid-template-columns:1fr; gap:0; } .plot .row a { text-align:left; }
  dl { grid-template-columns:1fr; } dt { margin-top:.35rem; }
}
@media print { section.check { break-inside:avoid; } }
"""


def render(checks, seed, effort, regimes=()):
    """Return the page.

    Parameters
    ----------
    checks : list of Check
    seed : int
    effort : str
    regimes : list of dict
        From `propositions.regimes`; shown as a table when there are some.

    Returns
    -------
    str
    """
    broken = [c for c in checks if c.verdict == "counterexample"]
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>pAp@k: which claims hold</title><style>{STYLE}</style></head><body><main>",
        "<h1>pAp@k: which published claims hold</h1>",
        f"<p class='soft'>Each claim was searched for a counterexample (seed {seed}, effort "
        f"{escape(effort)}). “Holds” means on all instances tried. Every check has a control, a "
        "variant whose verdict must be the opposite.</p>",
        _numbers(checks, broken),
        "<h2>Verdicts</h2>",
        _table(checks),
        "<h2>How close to a violation</h2>",
        "<p class='soft'>Largest violation found, on a logarithmic scale; at the left end none at "
        "all. Left of the dashed line: rounding of floating-point numbers.</p>",
        _violations_plot(checks),
        *_regimes(regimes),
        "<h2>The checks</h2>",
        *[_section(check) for check in checks],
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _numbers(checks, broken):
    tried = sum(c.instances for c in checks)
    facts = (
        (len(checks) - len(broken), "claims hold"),
        (len(broken), "have a counterexample"),
        (f"{sum(c.control_works for c in checks)}/{len(checks)}", "controls as expected"),
        (f"{tried:,}", "instances tried"),
    )
    items = "".join(f"<li><b>{value}</b>{words}</li>" for value, words in facts)
    return f"<ul class='numbers'>{items}</ul>"


def _badge(verdict):
    return f"<span class='badge {verdict}'>{verdict}</span>"


def _table(checks):
    rows = "".join(
        f"<tr><td><a href='#{c.id}'>{escape(c.title)}</a></td><td><code>{escape(c.formula)}</code>"
        f"</td><td>{_badge(c.verdict)}</td>"
        f"<td class='n' data-label='instances'>{c.instances:,}</td>"
        f"<td class='n' data-label='worst violation'>{_number(c.worst)}</td></tr>"
        for c in checks
    )
    head = (
        "<thead><tr><th>claim</th><th>formula</th><th>verdict</th><th>instances</th><th>worst</th>"
        "</tr></thead>"
    )
    return f"<table class='verdicts'>{head}<tbody>{rows}</tbody></table>"


def _violations_plot(checks):
    """One dot for each check on a logarithmic track; boxes, so that text keeps its size."""
    rounding = _position(TOL)
    rows = "".join(
        f"<div class='row'><a href='#{c.id}'>{c.id}</a><div class='track'>"
        f"<i class='rounding' style='left:{rounding:.1f}%'></i>"
        f"<i class='dot {c.verdict}' style='left:{_position(c.worst):.1f}%' "
        f"title='{_number(c.worst)}'></i></div></div>"
        for c in checks
    )
    ticks = "".join(
        f"<span style='left:{_position(10.0**power):.1f}%'>1e{power}</span>"
        for power in (-15, -10, -5, 0)
    )
    axis = f"<div class='row'><a></a><div class='ticks'>{ticks}</div></div>"
    return f"<div class='plot'>{rows}{axis}</div>"


def _position(violation, low=-17.0, high=5.0):
    """Place on the track in percent; zero and less at the left end."""
    power = log10(violation) if 0 < violation < inf else low
    return 100 * (min(max(power, low), high) - low) / (high - low)


def _regimes(rows):
    """Table: the negatives move up, the conditions are lost one after the other."""
    if not rows:
        return []
    conditions, surrogates = list(rows[0]["conditions"]), list(rows[0]["risk"])
    head = "".join(
        f"<th>{escape(name)}</th>"
        for name in ["shift", *conditions, *[f"risk, {s}" for s in surrogates]]
    )
    body = ""
    for row in rows:
        marks = "".join(
            f"<td class='{'holds' if a == 'yes' else 'counterexample'}'>{a}</td>"
            for a in row["conditions"].values()
        )
        risks = "".join(
            f"<td class='{'counterexample' if r > 0 else 'holds'}'>{_short(r)}</td>"
            for r in row["risk"].values()
        )
        body += f"<tr><td>{_short(row['shift'])}</td>{marks}{risks}</tr>"
    return [
        "<h2>Where consistency ends</h2>",
        "<p class='soft'>One user; the negatives move up along the truth. Columns: does some "
        "linear w realise the condition (certified); then the risk at the certified optimum of "
        "each surrogate for a small alpha.</p>",
        f"<div class='wide'><table><thead><tr>{head}</tr></thead>",
        f"<tbody>{body}</tbody></table></div>",
    ]


def _section(check):
    facts = (
        ("source", check.source),
        ("hypothesis", check.hypothesis),
        ("drawn", check.drawn),
        ("worst violation", _number(check.worst)),
        (
            "control",
            f"{check.control}: {check.control_verdict}"
            + ("" if check.control_works else " (the control does not work)"),
        ),
    )
    listed = "".join(f"<dt>{name}</dt><dd>{escape(str(text))}</dd>" for name, text in facts)
    parts = [
        f"<section class='check' id='{check.id}'><header><h3>{escape(check.title)} "
        f"<code class='soft'>{check.id}</code></h3>{_badge(check.verdict)}</header>",
        f"<p>{escape(check.claim)}</p><span class='formula'>{escape(check.formula)}</span>",
        f"<dl>{listed}</dl>",
    ]
    if check.counterexample:
        parts.append(_example("Counterexample", check.counterexample))
    elif check.control_counterexample:
        parts.append(_example(f"Fails with: {check.control}", check.control_counterexample))
    return "".join(parts) + "</section>"


def _example(title, example):
    """One counterexample: data where there are some, ranked lists, a number line, the values."""
    k, lists = example["k"], example["lists"]
    names = [f"list {n + 1}" for n in range(len(lists))] if len(lists) > 1 else [""]
    drawn = "".join(
        f"<div>{f'<b>{name}</b>' if name else ''}{_ranked(one, k)}{_number_line(one)}</div>"
        for name, one in zip(names, lists, strict=True)
    )
    return (
        f"<div class='example'><b>{escape(title)}</b>, k = {k}{_data(example.get('data'))}"
        f"<div class='lists'>{drawn}</div>{_values(example.get('values', {}))}</div>"
    )


def _data(data):
    """Features of a small data set, and the optimal w."""
    if not data:
        return ""

    def points(rows):
        return ", ".join("(" + ", ".join(f"{v:g}" for v in row) + ")" for row in rows)

    w = ", ".join(f"{v:.4g}" for v in data["w"])
    return (
        f"<dl><dt>positives x</dt><dd>{points(data['positives'])}</dd><dt>negatives x</dt>"
        f"<dd>{points(data['negatives'])}</dd><dt>optimal w</dt><dd>({w})</dd></dl>"
    )


def _ranked(one, k):
    """Items from the highest score down; ties put the negative first, since they are errors.

    Items keep the number they have in their list: the lists of a pair have the same items.
    """
    items = [(s, "q", n) for n, s in enumerate(one["negatives"], start=1)]
    items += [(s, "p", n) for n, s in enumerate(one["positives"], start=1)]
    items.sort(key=lambda item: (-item[0], item[1] == "p"))
    counted = {"p": min(len(one["positives"]), k), "q": k}
    rows = []
    for rank, (score, side, number) in enumerate(items, start=1):
        counted[side] -= 1
        words = "positive" if side == "p" else "negative"
        note = "" if counted[side] >= 0 else "<span class='cut'>not counted</span>"
        rows.append(
            f"<li><span class='rank'>{rank}</span><span class='item {side}'>{words} "
            f"{number}</span><span class='score'>{_short(score)}</span>{note}</li>"
        )
    return f"<ol class='ranked'>{''.join(rows)}</ol>"


def _number_line(one):
    """Scores on a line: positives above it, negatives below, equal scores stacked."""
    scores = one["positives"] + one["negatives"]
    low, high = min(scores), max(scores)
    span = (high - low) or 1.0
    width, middle = 320, 46
    marks = [f"<line x1='10' x2='310' y1='{middle}' y2='{middle}' stroke='var(--soft)'/>"]
    for side, sign, colour in (("positives", -1, "var(--pos)"), ("negatives", 1, "var(--neg)")):
        stacked = {}
        for score in one[side]:
            x = round(20 + (score - low) / span * 280)
            stacked[x] = stacked.get(x, 0) + 1
            y = middle + sign * (8 + 11 * (min(stacked[x], 3) - 1))
            marks.append(f"<circle cx='{x}' cy='{y}' r='4.5' fill='{colour}'/>")
    for score, anchor, x in ((low, "start", 10), (high, "end", 310)):
        marks.append(f"<text x='{x}' y='92' text-anchor='{anchor}'>{_short(score)}</text>")
    label = "positives above the line, negatives below"
    return (
        f"<svg viewBox='0 0 {width} 96' style='max-width:22rem' role='img' aria-label='{label}'>"
        f"{''.join(marks)}</svg>"
    )


def _values(values):
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{_listed(value)}</dd>" for name, value in values.items()
    )
    return f"<dl>{rows}</dl>" if rows else ""


def _listed(value):
    return ", ".join(_short(v) for v in value) if isinstance(value, list) else _short(value)


def _short(value):
    if not isfinite(value):
        return "none" if value < 0 else "infinite"
    return f"{value:.4g}".replace("-", "−")


def _number(value):
    if not isfinite(value):
        return "–"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 or abs(value) >= 1e4 else f"{value:.4g}"
