#!/usr/bin/env python3
"""The README's picture of a report: docs/report.png, from docs/results/h200-survey.json.

Usage: scripts/report_picture.py WARMLAP [OUT.png]
Needs Chromium; optipng makes the file smaller where it is there. Parts of the page are left out, nothing is put in.
"""
import base64
import os
import shutil
import subprocess
import sys
import tempfile

top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(top, "tests", "page"))
import browser  # noqa: E402

LEFT_OUT = ("#summary h3, #summary ul, #latency > .scroll, #latency figure:nth-of-type(n + 3), #latency .note,"
            "#throughput ~ section, footer, details, nav button")


def main():
    warmlap = os.path.abspath(sys.argv[1])
    out = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else os.path.join(top, "docs", "report.png"))
    path = browser.find()
    if not path:
        sys.exit("no Chromium here (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(os.path.join(top, "docs", "results"))
        page = os.path.join(folder, "report.html")
        subprocess.run([warmlap, "report", "h200-survey.json", "-o", page, "--title", "NVIDIA H200 by two routes"],
                       check=True, stderr=subprocess.DEVNULL)
        b = browser.Browser(path)
        try:
            b.size(1160, 900)
            b.open(page)
            b.evaluate(f"document.querySelectorAll({LEFT_OUT!r}).forEach(function (e) {{ e.remove(); }})")
            height = b.evaluate("document.querySelector('#throughput').getBoundingClientRect().bottom + scrollY + 12")
            data = b.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": 1145, "height": height, "scale": 1})
        finally:
            b.close()
    with open(out, "wb") as f:
        f.write(base64.b64decode(data["data"]))
    if shutil.which("optipng"):
        subprocess.run(["optipng", "-quiet", "-o5", out], check=True)
    print(f"{out}: {os.path.getsize(out)} bytes")


main()
