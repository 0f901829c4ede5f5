"""Check the built site: links, formulas, requests to other hosts; with --browser, how pages look.

    python docs/_site/check.py site
    python docs/_site/check.py site --browser --pictures shots

The first reads the HTML files; where Node.js is there, KaTeX reads every formula. The second opens
every page in headless Chromium (selenium) on a phone and on a desktop: nothing may be wider than
the screen, nor code wider than its column on a desktop; the console stays empty, no request leaves
the machine, and every formula is rendered. Pictures are taken of some pages, light and dark.
"""

import argparse
import functools
import http.server
import json
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("use", "href")}
_SCREENS = {"phone": (390, 844), "desktop": (1280, 900)}
_SHOWN = (
    "index",
    "install",
    "tutorial",
    "findings",
    "solver",
    "commands",
    "math/surrogates",
    "examples/first_fit",
    "reference",
    "reference/estimators",
)
_ON_SCREEN = """
    const width = document.documentElement.clientWidth, faults = [];
    const inside = e => { for (e = e.parentElement; e; e = e.parentElement)
        if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true; return false; };
    const all = selector => [...document.querySelectorAll(selector)];
    const excess = document.documentElement.scrollWidth - width;
    if (excess > 0) faults.push(`wider than the screen by ${excess} pixels`);
    for (const e of all('.md-content *'))
        if (e.getBoundingClientRect().right > width + 1 && !inside(e) && faults.length < 4)
            faults.push('wider than the screen: ' + e.outerHTML.slice(0, 120));
    if (width > 1200)
        for (const e of all('.md-content pre > code'))
            if (e.scrollWidth > e.clientWidth + 1)
                faults.push(`code ${e.scrollWidth - e.clientWidth} pixels wider than its column: `
                    + e.innerText.split('\\n').reduce((a, b) => a.length < b.length ? b : a));
    for (const e of all('.katex-error, .arithmatex:not(:has(.katex))'))
        faults.push('formula not rendered: ' + e.outerHTML.slice(0, 120));
    for (const e of all('.arithmatex .katex'))
        if (!e.getBoundingClientRect().width) faults.push('formula without a width');
    return faults;
"""
_READ_FORMULAS = """
    const katex = require(process.argv[1]);
    for (const [page, tex] of JSON.parse(require("fs").readFileSync(0)))
        try { katex.renderToString(tex, {strict: "error"}); }
        catch (error) { console.log(`${page}: ${error.message}: ${tex}`); }
"""


class _Page(HTMLParser):
    """Ids, links, and what the browser would load, of one HTML file."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.formulas = set(), [], [], []
        self._in_formula = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.update(value for key, value in attrs.items() if key in ("id", "name") and value)
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        loads = [attrs[a] for t, a in _LOADS if t == tag and attrs.get(a)]
        if tag == "link" and attrs.get("rel") not in ("canonical", "next", "prev"):
            loads.append(attrs["href"])
        self.loaded += loads
        self._in_formula = attrs.get("class") == "arithmatex"

    def handle_data(self, data):
        if self._in_formula:
            self.formulas.append(data.strip()[2:-2])  # between \\( and \\), as formulas.js reads it

    def handle_endtag(self, tag):
        self._in_formula = False


def check_files(site):
    """Broken links and anchors, what would be loaded from elsewhere, formulas that are wrong."""
    pages = {path.resolve(): _Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links are absolute
        for link in page.links + page.loaded:
            fault = _fault(path, link, link in page.loaded, pages)
            if fault:
                yield f"{path.relative_to(site.resolve())}: {fault}: {link}"
    formulas = [
        (str(path.relative_to(site.resolve())), tex)
        for path, page in pages.items()
        for tex in page.formulas
    ]
    yield from _wrong_formulas(formulas, site)


def _wrong_formulas(formulas, site):
    """What KaTeX of the site cannot read or warns about."""
    node = shutil.which("node")
    if node is None:
        print(f"no Node.js: {len(formulas)} formulas are not checked")
        return
    katex = str((site / "assets/katex/katex.min.js").resolve())
    call = [node, "-e", _READ_FORMULAS, katex]
    done = subprocess.run(
        call, input=json.dumps(formulas), capture_output=True, text=True, check=True
    )
    yield from done.stdout.splitlines()


def _fault(path, link, is_loaded, pages):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "loaded from elsewhere" if is_loaded and parts.scheme != "data" else None
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "no such anchor"
    return None


def check_in_browser(site, pictures):
    """Open every page on both screens; save pictures of some."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    handler = functools.partial(_Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    driver_path = shutil.which("chromedriver")  # else selenium would ask the network for one
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        for path in sorted(site.rglob("index.html")):
            folder = path.parent.relative_to(site).as_posix()
            name = "index" if folder == "." else folder
            for screen, size in _SCREENS.items():
                _resize(driver, size)
                driver.get(root + ("" if name == "index" else name + "/"))
                yield from (f"{name}, {screen}: {f}" for f in _faults_on_screen(driver, root))
            if pictures and name in _SHOWN:
                _save_pictures(driver, pictures, name.replace("/", "-"))
    finally:
        driver.quit()
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def _resize(driver, size):
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": size[0] < 600}
    )


def _faults_on_screen(driver, root):
    yield from driver.execute_script(_ON_SCREEN)
    for entry in driver.get_log("browser"):
        yield f"console: {entry['message'][:200]}"
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((root, "data:", "blob:")):
                yield f"asks {url[:120]}"


def _save_pictures(driver, folder, name):
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        driver.execute_script("localStorage.clear()")  # the scheme that the page before had
        driver.refresh()
        for screen, size in _SCREENS.items():
            _resize(driver, size)
            driver.save_screenshot(str(folder / f"{name}-{screen}-{scheme}.png"))


def main():
    """Print the faults; status 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--pictures", type=Path, help="folder for pictures of some pages")
    given = parser.parse_args()
    if not (given.site / "index.html").exists():
        parser.error(f"{given.site} holds no index.html: mkdocs build first")
    faults = list(check_files(given.site))
    if given.browser:
        if given.pictures:
            given.pictures.mkdir(parents=True, exist_ok=True)
        faults += check_in_browser(given.site, given.pictures)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {len(list(given.site.rglob('*.html')))} pages")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
