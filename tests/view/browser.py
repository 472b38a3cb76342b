# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium by its own protocol over a pipe: opens pages, runs script in them, moves the mouse, takes pictures."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


def find():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    def __init__(self, width=1280, height=1600, dark=False):
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def ends():
            # chromium reads 3 and writes 4, whatever numbers the pipes have here
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--enable-precise-memory-info", "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "about:blank"],
            preexec_fn=ends, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session, self.wrong = b"", 0, None, []
        page = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")
        self.size(width, height, dark)

    def size(self, width, height, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def message(self, until):
        while b"\0" not in self.rest:
            if not select.select([self.back], [], [], max(0, until - time.time()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, seconds=120, **params):
        self.number += 1
        query = {"id": self.number, "method": method, "params": params}
        if self.session:
            query["sessionId"] = self.session
        os.write(self.to, json.dumps(query).encode() + b"\0")
        until = time.time() + seconds
        while True:
            m = self.message(until)
            if m.get("id") == self.number:
                if "error" in m:
                    raise RuntimeError(method + ": " + m["error"]["message"])
                return m["result"]
            if m.get("method") == "Runtime.exceptionThrown":
                d = m["params"]["exceptionDetails"]
                self.wrong.append(d.get("exception", {}).get("description") or d["text"])
            if m.get("method") == "Runtime.consoleAPICalled" and m["params"]["type"] in ("error", "warning"):
                self.wrong.append(str(m["params"]["args"]))
            if m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] == "error":
                self.wrong.append(m["params"]["entry"]["text"])

    def run(self, script, seconds=120):
        """The value of an expression, awaited."""
        r = self.ask("Runtime.evaluate", seconds, expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            d = r["exceptionDetails"]
            raise RuntimeError(d.get("exception", {}).get("description") or d["text"])
        return r["result"].get("value")

    def open(self, url, seconds=60):
        """Until the page says that it is ready; the seconds that took."""
        begin = time.time()
        self.ask("Page.navigate", seconds, url=url)
        while time.time() < begin + seconds:
            if self.run("document.getElementById('live')?.dataset.ready === '1'"):
                return time.time() - begin
            time.sleep(0.02)
        raise TimeoutError("not ready: " + str(self.wrong) + str(self.run("document.getElementById('live')?.textContent.slice(0, 300)")))

    def heap(self):
        """MiB that the page takes, arrays included."""
        used = self.ask("Runtime.getHeapUsage")
        return (used["usedSize"] + used.get("backingStorageSize", 0)) / 2**20

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path, clip=None):
        r = self.ask("Page.captureScreenshot", format="png", **({"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}))
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)
