"""Reports in headless Chromium: charts are drawn, names are inert, nothing is asked for.

Usage: test_browser.py WARMLAP SOURCE_FOLDER FOLDER HAVE_CHARTJS
Exit status 77 (a skip) without a browser. Screenshots stay in FOLDER.
"""
import copy
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as driver  # noqa: E402

warmlap, source, folder, have_charts = sys.argv[1:5]
failures = []

# Runs if any of it becomes markup or script anywhere.
CANARY = "window.canary=(window.canary||0)+1"
HOSTILE = [
    "</script><script>" + CANARY + "</script>",
    "<img src=x onerror=\"" + CANARY + "\">",
    "\"'><svg onload=" + CANARY + ">\u2028" + CANARY + "\u2029",
    "${" + CANARY + "}`;" + CANARY + "//\\\"];" + CANARY,
    "javascript:" + CANARY + "<!--<script>" + "x" * 200,
]


def check(holds, text):
    if not holds:
        failures.append(text)
        print("FAILED:", text)


def make(name, *arguments):
    subprocess.run([warmlap, "report", "-o", name, "--force", *arguments], check=True,
                   stderr=subprocess.DEVNULL)
    return name


def write(name, document):
    with open(name, "w", encoding="utf-8") as f:
        json.dump(document, f)
    return name


def full_row(survey):
    """A row that has everything a chart can show; the values are made up."""
    row = copy.deepcopy(survey["rows"][0])
    row["layers"] = [
        {"name": f"layer{i}", "kind": "conv" if i % 3 else "pool", "kernel": "k", "flops": 10 ** (7 + i % 3),
         "bytes": 1000, "device_s": 1e-5 * (i + 1), "flops_per_s": 1e12 / (i + 1), "intensity": 2.0 ** i,
         "roofline_share": 0.5, "bound": "compute"} for i in range(8)]
    row["ceilings"] = {"flops_per_s": {row["precision"]: 2e13}, "memory_bytes_per_s": 3e12,
                       "cache_bytes_per_s": 8e12}
    row["telemetry"] = {
        "source": "NVML", "clock_min_mhz": 1500, "clock_mean_mhz": 1600, "clock_max_mhz": 1700, "power_w": 300,
        "series": {"at_s": [0, 0.1, 0.2, 5, 5.1], "clock_mhz": [1500, 1600, 1700, 1650, 1640],
                   "power_w": [200, None, 310, 305, 300], "temperature_c": [40, 41, 42, 43, 44]}}
    return row


def spans_document():
    def side(first):
        repeats = [{"submit_s": 1e-5, "wall_s": first / (i + 1), "device_s": first / (i + 2)} for i in range(5)]
        return {"submit_mean_s": 1e-5, "wall_mean_s": first, "device_mean_s": first, "repeats": repeats}
    return {"schema": "warmlap-spans/1", "tool": {}, "host": {}, "started": "2026-01-01T00:00:00Z",
            "rows": [{"status": "ok", "selector": "cuda:0", "device": {"name": HOSTILE[0]},
                      "size": [8, 8, 8], "without_warmup": side(0.5), "with_warmup": side(0.1)}]}


def layers_document():
    """Counts of operations that need prefixes, not in order."""
    layers = [{"name": f"layer{i}", "kind": "conv", "kernel": "k", "flops": flops, "device_s": 1e-5}
              for i, flops in enumerate([47200, 1200000000, 0, 800, 9000000])]
    return {"schema": "warmlap/1", "rows": [{"status": "ok", "batch": 1, "layers": layers}]}


# Colours in the middle of a canvas: an empty one has none that is opaque.
PIXELS = """
Array.from(document.querySelectorAll("canvas")).map(function (c) {
  var data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set(), drawn = 0;
  for (var i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 0) continue;
    drawn++;
    seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  }
  return {kind: c.closest("figure").dataset.kind, share: drawn * 4 / data.length, colours: seen.size,
          width: c.width, height: c.height};
})
"""


def check_page(page, name, kinds):
    page.open(name)
    check(page.console == [], f"{name}: the console says {page.console}")
    check(page.requests == ["file://" + os.path.abspath(name)], f"{name}: asked for {page.requests}")
    check(page.evaluate("typeof window.canary") == "undefined", f"{name}: a name ran as script")
    check(page.evaluate("document.querySelectorAll('script').length") == (3 if kinds else 1), f"{name}: scripts")
    check(page.evaluate("document.querySelectorAll('img,svg,iframe,object,embed').length") == 0, f"{name}: elements")
    canvases = page.evaluate(PIXELS)
    for c in canvases:
        check(c["share"] > 0.005 and c["colours"] > 8 and c["width"] > 100, f"{name}: an empty canvas: {c}")
    check({c["kind"] for c in canvases} == set(kinds), f"{name}: charts are {sorted({c['kind'] for c in canvases})}")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 0, f"{name}: {wide} pixels wider than the window")
    check(page.evaluate("Array.from(document.querySelectorAll('figure')).every(function (f) {"
                        "return f.querySelector('table tbody tr'); })"), f"{name}: a figure without a table")


def check_sorting(page, name):
    page.open(name)
    column = ("Array.from(document.querySelectorAll('#summary tbody tr')).map(function (r) {"
              "return parseFloat(r.cells[%d].textContent); })")
    index = page.evaluate("Array.from(document.querySelectorAll('#summary th')).findIndex(function (t) {"
                          "return t.textContent.indexOf('FPS') === 0; })")
    click = f"document.querySelectorAll('#summary th')[{index}].querySelector('button').click()"
    before = page.evaluate(column % index)
    page.evaluate(click)
    check(page.evaluate(column % index) == sorted(before), f"{name}: not sorted upwards")
    page.evaluate(click)
    check(page.evaluate(column % index) == sorted(before, reverse=True), f"{name}: not sorted downwards")
    check(before != sorted(before), f"{name}: was sorted already, so that sorting shows nothing")


def check_prefixes(page, name):
    """A million is less than a thousand millions, whatever their figures."""
    page.open(name)
    rows = ("(function (down) { var table = Array.from(document.querySelectorAll('#layers table.sortable'))[0];"
            "var i = Array.from(table.tHead.rows[0].cells).findIndex(function (t) {"
            "return t.textContent === 'FLOP'; });"
            "for (var k = 0; k <= down; k++) table.tHead.rows[0].cells[i].querySelector('button').click();"
            "return Array.from(table.tBodies[0].rows).map(function (r) { return r.cells[i].textContent; }); })(%d)")
    up = page.evaluate(rows % 0)
    page.open(name)
    down = page.evaluate(rows % 1)
    check(up == ["800", "47.2k", "9.00M", "1.20G", "-"], f"{name}: with prefixes upwards {up}")
    check(down == ["1.20G", "9.00M", "47.2k", "800", "-"], f"{name}: with prefixes downwards {down}")


def check_looks(page, name):
    """Light, dark, narrow and on paper."""
    for scheme, width in (("light", 1200), ("dark", 1200), ("light", 360)):
        page.size(width, 900)
        page.scheme(scheme)
        page.open(name)
        check(page.console == [], f"{name}, {scheme}, {width}: the console says {page.console}")
        bright = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
                               ".reduce(function (a, b) { return a + b; }, 0)")
        check((bright > 600) == (scheme == "light"), f"{name}: {scheme} has a background of {bright}")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 0, f"{name}: {wide} pixels wider than {width}")
        for c in page.evaluate(PIXELS):
            check(c["colours"] > 8, f"{name}, {scheme}, {width}: an empty canvas: {c}")
        page.screenshot(f"{scheme}-{width}.png")
    page.size(1200, 900)
    page.scheme("dark")
    page.open(name)
    page.pdf("paper.pdf")
    check(os.path.getsize("paper.pdf") > 20000, "the page on paper is empty")
    check(page.console == [], f"{name} on paper: the console says {page.console}")
    check(page.evaluate("document.documentElement.classList.contains('paper')") is False,
          "the page stays on paper")


def main():
    path = driver.find()
    if not path:
        print("skipped: no Chromium here (Debian: chromium)")
        return 77
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
    survey_path = os.path.join(source, "docs/results/h200-survey.json")
    with open(survey_path, encoding="utf-8") as f:
        survey = json.load(f)
    charts = have_charts == "ON"
    some = ["bars", "latency", "throughput", "parts", "clocks"]
    every = some + ["layers", "roofline", "spans", "sensors"]
    hostile = copy.deepcopy(survey)
    hostile["rows"] = [full_row(survey) for _ in HOSTILE]
    for i, (row, text) in enumerate(zip(hostile["rows"], HOSTILE)):
        row["device"]["name"] = row["device"]["driver"] = row["selector"] = text + str(i)
        row["layers"][0]["name"] = row["layers"][0]["kernel"] = row["layers"][1]["kind"] = text
        row["notes"] = [text]
        row["verdict"] = {"word": text, "reason": text}
        row["telemetry"]["source"] = text
    hostile["host"]["cpu"] = hostile["started"] = hostile["tool"]["version"] = HOSTILE[0]
    hostile["config"][HOSTILE[0]] = {HOSTILE[1]: HOSTILE[2]}
    write("<img src=x onerror=canary=1>.json".replace("/", ""), hostile)
    write("spans.json", spans_document())

    pages = {
        "real.html": (make("real.html", survey_path), some),
        "hostile.html": (make("hostile.html", "<img src=x onerror=canary=1>.json", "spans.json",
                              "--title", HOSTILE[0]), every),
        "tables.html": (make("tables.html", survey_path, "--no-charts"), []),
        "layers.html": (make("layers.html", write("layers.json", layers_document())), ["layers"]),
        "nothing.html": (make("nothing.html", write("empty.json", {"schema": "warmlap/1", "rows": []})), []),
    }
    page = driver.Browser(path)
    try:
        for name, (_, kinds) in pages.items():
            if name == "nothing.html":
                page.open(name)
                check(page.console == [], f"{name}: the console says {page.console}")
            else:
                check_page(page, name, kinds if charts else [])
        check_sorting(page, "real.html")
        check_prefixes(page, "layers.html")
        if charts:
            check_looks(page, "hostile.html")
    finally:
        page.close()
    print(f"{len(pages)} pages, {len(failures)} failures" + ("" if charts else "; built without Chart.js"))
    return 1 if failures else 0


sys.exit(main())
