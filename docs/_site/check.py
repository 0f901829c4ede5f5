"""Check the built site: links, anchors, requests to other hosts; with --browser, how pages look.

    python docs/_site/check.py site
    python docs/_site/check.py site --browser --pictures shots

The first reads the HTML files. The second opens every page in headless Chromium (selenium) at the
width of a phone: nothing may be wider than the screen, the console stays empty, no request leaves
the machine, and every formula has a size.
"""

import argparse
import functools
import http.server
import json
import shutil
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("use", "href")}
_PHONE, _DESKTOP = (390, 844), (1280, 900)
_SHOWN = ("index", "tutorial", "math/ts", "paper", "examples/first_fit", "reference/solvers")
_TOO_WIDE = """
    const width = document.documentElement.clientWidth;
    const inside = e => { for (e = e.parentElement; e; e = e.parentElement)
        if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true; return false; };
    return [document.documentElement.scrollWidth - width,
        [...document.querySelectorAll('.md-content *')]
            .filter(e => e.getBoundingClientRect().right > width + 1 && !inside(e))
            .slice(0, 3).map(e => e.outerHTML.slice(0, 120)),
        [...document.querySelectorAll('math')].filter(e => !e.getBoundingClientRect().width).length]
"""


class _Page(HTMLParser):
    """Ids, links, and what the browser would load, of one HTML file."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
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


def check_files(site):
    """Broken links and anchors, and what would be loaded from elsewhere."""
    pages = {path.resolve(): _Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links are absolute
        for link in page.links + page.loaded:
            fault = _fault(path, link, link in page.loaded, pages)
            if fault:
                yield f"{path.relative_to(site.resolve())}: {fault}: {link}"


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
    """Open every page on a phone-sized screen; save pictures of some, on both screens."""
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
            name = path.parent.relative_to(site).as_posix()
            _resize(driver, _PHONE)
            driver.get(root + ("" if name == "." else name + "/"))
            yield from (f"{name}: {fault}" for fault in _faults_on_screen(driver, root))
            if pictures and name.replace(".", "index") in _SHOWN:
                _save_pictures(driver, pictures, name.replace(".", "index").replace("/", "-"))
    finally:
        driver.quit()
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def _resize(driver, size):
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": size == _PHONE}
    )


def _faults_on_screen(driver, root):
    excess, elements, invisible = driver.execute_script(_TOO_WIDE)
    if excess > 0 or elements:
        yield f"wider than the screen by {excess} pixels {elements}"
    if invisible:
        yield f"{invisible} formulas have no width"
    for entry in driver.get_log("browser"):
        yield f"console: {entry['message'][:200]}"
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((root, "data:", "blob:")):
                yield f"asks {url[:120]}"


def _save_pictures(driver, folder, name):
    for label, size in (("phone", _PHONE), ("desktop", _DESKTOP)):
        _resize(driver, size)
        driver.save_screenshot(str(folder / f"{name}-{label}.png"))


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
