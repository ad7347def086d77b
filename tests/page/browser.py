"""A headless Chromium, driven over its debugging pipe: standard library only."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser's path, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page. console: what it logged or threw; requests: every address it asked for."""

    def __init__(self, path, width=1200, height=900):
        self.profile = tempfile.mkdtemp(prefix="lap-browser-")
        ours, self.their_in = os.pipe()
        self.out_fd, theirs = os.pipe()

        def streams():
            # 3 is read by the browser, 4 written; moved out of each other's way first.
            a, b = os.dup(ours), os.dup(theirs)
            os.dup2(a, 3)
            os.dup2(b, 4)

        os.set_inheritable(ours, True)
        os.set_inheritable(theirs, True)
        self.process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4, ours, theirs), preexec_fn=streams, start_new_session=True)
        os.close(ours)
        os.close(theirs)
        self.buffer, self.number, self.session = b"", 0, None
        self.console, self.requests, self.loaded = [], [], False
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.out_fd], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.out_fd, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        method, data = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(data["type"] + ": " + str([a.get("value") for a in data["args"]]))
        elif method == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            self.console.append("exception: " + details["text"] + " " +
                                details.get("exception", {}).get("description", ""))
        elif method == "Log.entryAdded":
            self.console.append(data["entry"]["level"] + ": " + data["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(data["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, seconds=120, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.their_in, data):]
        while True:
            answer = self.receive(seconds)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + str(answer["error"]))
                return answer["result"]

    def open(self, path):
        self.console, self.requests, self.loaded = [], [], False
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not self.loaded:
            self.receive(120)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(expression + ": " + str(result["exceptionDetails"]))
        return result["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(data["data"]))

    def pdf(self, path):
        data = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(data["data"]))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", seconds=10)
        except (OSError, EOFError, TimeoutError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.their_in)
        os.close(self.out_fd)
        shutil.rmtree(self.profile, ignore_errors=True)
