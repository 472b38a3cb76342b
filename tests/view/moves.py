# SPDX-License-Identifier: Apache-2.0
"""The page in a browser.

Opens pages of `cufrag view` in headless Chromium and uses them with mouse and keys: pixel columns,
blocks, stacks, ends of blocks and sums over a selection are compared with what page.py reads from
the same file. Names that are HTML stay text."""
import csv
import http.client
import os
import pickle
import random
import re
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from browser import Browser
from checks import check
from page import SERIES, Page

VIEW = "document.getElementById('live').view"

def view(program, trace, html, *more):
    subprocess.run([program, "view", trace, "--out", html, "-q", *more], check=True, stdout=subprocess.DEVNULL, timeout=300)


def wait(browser, what, seconds=20):
    until = time.time() + seconds
    while time.time() < until:
        value = browser.run(what)
        if value:
            return value
        time.sleep(0.03)
    raise TimeoutError(what + str(browser.wrong))


def settle(browser):
    """Until state and flame graph are those of the cursor."""
    browser.run("new Promise(done => setTimeout(() => requestAnimationFrame(done), 250))")
    wait(browser, f"{VIEW}.state && {VIEW}.state.event === {VIEW}.ui.at && !!{VIEW}.flame")


def check_states(browser, events, name):
    """Segments and blocks at moments in any order: their sums are those of the series."""
    dice, wrong = random.Random(2), None
    for at in [0, len(events) - 1] + [dice.randrange(len(events)) for _ in range(12)]:
        got = browser.run(f"{VIEW}.stateAt({VIEW}.head.lanes[0], {at}).then(s => [s.ranges.reduce((sum, r) => sum + r.end - r.start, 0), s.blocks.reduce((sum, b) => sum + b.granted, 0), s.totals[0]])")
        series = events[at]["series"]
        if got != [series[3], series[2], series[0]]:
            wrong = wrong or f"event {at}: {got}, not {series}"
    check(name + ": segments and blocks", not wrong, wrong)


def canvas(browser, number):
    return browser.run(f"(() => {{ const c = document.querySelectorAll('#live .panel > canvas')[{number}]; c.scrollIntoView({{ block: 'center' }});"
                       " const b = c.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")


def check_columns(browser, events, name):
    """Spans from the whole run to single events: every pixel column has the extremes of its events."""
    dice, wrong = random.Random(1), None
    count = len(events)
    spans = [(0, count), (0, 8)] + [(a, a + w) for w in (16, 300, 5000, count // 3) if w < count for a in [dice.randrange(count - w)]]
    for a, b in spans:
        script = f"{VIEW}.columnsOf({VIEW}.head.lanes[0], {a}, {b}, 700)"
        wait(browser, script + ".exact")
        c = browser.run(f"(() => {{ const c = {script}; return {{ edges: c.edges, high: c.high.map(h => [...h]), low: c.low.map(l => [...l]) }}; }})()")
        if c["edges"][0] > a + 4096 or c["edges"][-1] < b - 4096 or c["edges"] != sorted(c["edges"]):
            wrong = wrong or f"{a}-{b}: edges {c['edges'][0]} to {c['edges'][-1]}"
        for s in range(4):
            for i in range(700):
                own = [events[e]["series"][s] for e in range(c["edges"][i], c["edges"][i + 1])]
                if own and (max(own), min(own)) != (c["high"][s][i], c["low"][s][i]):
                    wrong = wrong or f"{a}-{b}, {SERIES[s]}, column {i}: {c['low'][s][i]} to {c['high'][s][i]}, not {min(own)} to {max(own)}"
            if max(c["high"][s]) < max(e["series"][s] for e in (events[a + 4096:b - 4096] if b - a > 8192 else events[a:b])):
                wrong = wrong or f"{a}-{b}: the peak is lost"
    check(name + ": columns", not wrong, wrong)


def held_by(events, first, last):
    """Bytes x us by stack over events [first, last), and the us."""
    live, out = {}, {}
    begin, end = events[first]["us"], events[last - 1]["us"]
    for number, e in enumerate(events[:last]):
        if e["kind"] == 0 and e["address"] is not None:
            live[e["slot"]] = (max(e["us"], begin), e["stack"], e["granted"])
        elif e["kind"] in (1, 3) and e["slot"] in live:
            since, stack, granted = live.pop(e["slot"])
            if number >= first:
                out[stack] = out.get(stack, 0) + granted * (e["us"] - since)
    for since, stack, granted in live.values():
        out[stack] = out.get(stack, 0) + granted * (end - since)
    return out, end - begin


def check_block(browser, page, events, name):
    """Points at a block with a stack; what the page says of it is what the file says."""
    file = page.head["files"][0]
    if len(page.texts(file["frames"])) == 0:
        return
    x, y, width, height = canvas(browser, 1)
    at = browser.run(f"""(() => {{ const v = {VIEW}; for (let py = 4; py < {height}; py += 16) for (let px = 3; px < {width}; px += 3) {{
        const b = v.hit(px, py)?.block; if (b && b.stack && b.born > 100) return [px, py, b.born]; }} return null; }})()""")
    check(name + ": a block with a stack", at)
    if not at:
        return
    px, py, born = at
    browser.mouse("mouseMoved", x + px, y + py)
    wait(browser, f"document.querySelector('#live .detail').dataset.block === '{born}'")
    frames, stacks = page.texts(file["frames"]), page.columns(file["stacks"])[1]
    for _ in range(events[born]["stack"] + 1):
        stack = [stacks.u() for _ in range(stacks.u())]
    shown = browser.run("[...document.querySelectorAll('#live .stack li')].map(l => l.textContent)")
    check(name + ": its stack", shown == [frames[f] for f in stack], shown)
    text = browser.run("document.querySelector('#live .detail').textContent")
    gone = next((n for n in range(born + 1, len(events)) if events[n]["kind"] in (1, 3) and events[n]["slot"] == events[born]["slot"]), None)
    said = f"event {gone:,}" if gone is not None else "not in this recording"
    check(name + ": when it is freed", said in text, text + " / " + said)
    check(name + ": its size and event", f"event {born:,}" in text and f"0x{events[born]['address']:x}" in text, text)


def check_moves(browser, page, events, html, name):
    x, y, width, height = canvas(browser, 0)
    middle = x + 74 + (width - 80) / 2
    before = browser.run(f"{VIEW}.ui.x1 - {VIEW}.ui.x0")
    for _ in range(5):
        browser.mouse("mouseWheel", middle, y + 100, deltaX=0, deltaY=-300)
    check(name + ": the wheel zooms", browser.run(f"{VIEW}.ui.x1 - {VIEW}.ui.x0") < before / 8)
    browser.ask("Input.dispatchKeyEvent", type="keyDown", key="p", text="p")
    check(f"{name}: a key before the focus", browser.run(f"{VIEW}.ui.at === {page.head['lanes'][0]['peak_event']}"))
    peak = page.head["lanes"][0]["peak_event"]
    for focus in ("button", "canvas[tabindex]"):
        browser.run(f"document.querySelector('#live {focus}').focus(), {VIEW}.goTo(0), 1")
        for key, what in (("0", f"x0 === 0 && {VIEW}.ui.x1 === {len(events)}"),
                          ("+", f"x1 - {VIEW}.ui.x0 < {len(events)}"),
                          ("p", f"at === {peak}"), ("[", f"at === {peak - 1}"), ("0", "x0 === 0")):
            browser.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            check(f"{name}: key {key} on {focus}", browser.run(f"{VIEW}.ui.{what}"))
    browser.mouse("mousePressed", x + 74 + (width - 80) * 0.25, y + 100, button="left", clickCount=1)
    browser.mouse("mouseMoved", x + 74 + (width - 80) * 0.5, y + 100, button="left", buttons=1)
    browser.mouse("mouseReleased", x + 74 + (width - 80) * 0.5, y + 100, button="left", clickCount=1)
    first, last = browser.run(f"{VIEW}.ui.sel")
    check(name + ": a span is selected", abs(first - len(events) / 4) < len(events) / 50 and abs(last - len(events) / 2) < len(events) / 50, (first, last))
    sums, us = held_by(events, first, last)
    got = dict(map(tuple, browser.run(f"{VIEW}.weights({VIEW}.head.lanes[0], 0, [{first}, {last}]).then(w => [...w].map(([k, v]) => [Math.max(k, 0), v]))")))
    far = [s for s in sums if s and abs(sums[s] / us - got.get(s, 0)) > 1 + 1e-6 * sums[s] / us]
    check(name + ": who holds the selection", us and not far, far[:3])
    browser.run(f"(() => {{ const v = {VIEW}; v.ui.mapScale = 2; v.ui.mapTop = 3; v.ui.pinned = true; v.showBlock(v.rangeOf(v.state.blocks[3])); v.redraw(); return 1; }})()")
    born = browser.run(f"{VIEW}.state.blocks[3].born")
    link = browser.run("new Promise(done => setTimeout(() => done(location.hash), 600))")
    browser.open("file://" + html + "?again" + link)
    check(name + ": a link holds the view", browser.run(f"[{VIEW}.ui.sel, {VIEW}.ui.mapScale, {VIEW}.ui.mapTop]") == [[first, last], 2, 3], link)
    wait(browser, f"document.querySelector('#live .detail').dataset.block === '{born}'")


def check_fingers(browser, events, name):
    """Two fingers zoom about the point between them, one moves."""
    browser.run(f"(() => {{ const u = {VIEW}.ui; u.axis = 'events'; u.sel = null; u.x0 = 0; u.x1 = {len(events)}; {VIEW}.redraw(); return 1; }})()")
    x, y, width, height = canvas(browser, 0)

    def touch(kind, *xs):
        browser.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x + at, "y": y + 120, "id": i} for i, at in enumerate(xs)])

    middle = 74 + (width - 80) / 2
    touch("touchStart", middle - 50)
    touch("touchStart", middle - 50, middle + 50)
    for apart in (60, 80, 120, 200):
        touch("touchMove", middle - apart, middle + apart)
    touch("touchEnd")
    a, b = browser.run(f"[{VIEW}.ui.x0, {VIEW}.ui.x1]")
    check(name + ": two fingers zoom", abs((b - a) / len(events) - 0.25) < 0.02 and abs((a + b) / 2 / len(events) - 0.5) < 0.02, (a, b))
    touch("touchStart", middle)
    for at in (-20, -60, -100):
        touch("touchMove", middle + at)
    touch("touchEnd")
    c, d = browser.run(f"[{VIEW}.ui.x0, {VIEW}.ui.x1]")
    check(name + ": one finger moves", abs(d - c - (b - a)) < 1 and abs(c - a - 100 / (width - 80) * (b - a)) < (b - a) / 50, (a, c))
    touch("touchStart", middle)
    touch("touchEnd")
    at = browser.run(f"{VIEW}.ui.pinned && {VIEW}.ui.at")
    check(name + ": a tap holds the cursor", abs(at - (c + d) / 2) < (d - c) / 50, (at, c, d))


def check_comparison(browser, page, name):
    """A marked moment beside the cursor: two towers whose roots have the bytes of either, and the difference."""
    peak = page.head["lanes"][0]["peak_event"]
    browser.run(f"(() => {{ const v = {VIEW}; v.goTo({peak}); v.ui.sel = null; v.ui.mark = {peak // 4}; v.ui.other = 'mark'; v.redraw(); return 1; }})()")
    wait(browser, f"{VIEW}.flame?.differs")
    sums = [browser.run(f"{VIEW}.stateAt({VIEW}.head.lanes[0], {e}).then(s => s.blocks.reduce((sum, b) => sum + b.granted, 0))") for e in (peak // 4, peak)]
    check(name + ": before and now", browser.run(f"[{VIEW}.flame.base, {VIEW}.flame.value]") == sums, sums)
    svg = browser.run(f"{VIEW}.pictureOf(2)")
    check(name + ": side by side", f"event {peak // 4:,} (marked)" in svg and f"event {peak:,}, " in svg and "red is more" in svg, svg[:300])
    settle(browser)
    tops = browser.run(f"{VIEW}.towers().filter(t => t.node === {VIEW}.flame).map(t => t.w)")
    width = canvas(browser, 2)[2]
    check(name + ": one scale", len(tops) == 3 and abs(tops[0] / tops[1] - sums[0] / sums[1]) < 0.01 and abs(tops[2] - width) < 2, (tops, sums, width))
    browser.run(f"(() => {{ {VIEW}.ui.other = 'lane1'; {VIEW}.redraw(); return 1; }})()")
    wait(browser, f"{VIEW}.flame?.sides?.[0].includes({VIEW}.head.lanes[1].policy)")
    check(name + ": two lanes", browser.run(f"{VIEW}.pictureOf(0)").count("<path") == 8)
    browser.run(f"(() => {{ {VIEW}.ui.other = ''; {VIEW}.redraw(); return 1; }})()")


def check_marks(browser, page, name):
    """Every kind of mark is there and is gone to; sizes of cards near the peak stand beside it."""
    marks, at, found = page.columns(page.head["lanes"][0]["marks"])[0], 0, [[], [], [], []]
    while marks.more():
        kind, at, _, _ = marks.u(), at + marks.u(), marks.u(), marks.u()
        found[kind].append(at)
    for kind in range(4):
        browser.run(f"(() => {{ {VIEW}.ui.marks = '{kind}'; {VIEW}.goTo(0); return 1; }})()")
        went = []
        for _ in sorted(set(found[kind]) - {0})[:3]:
            went.append(browser.run(f"(() => {{ document.querySelector('#live button[title=\"next mark\"]').click(); return {VIEW}.ui.at; }})()"))
        check(f"{name}: marks of kind {kind}", went == sorted(set(found[kind]) - {0})[:3], went)
    browser.run(f"(() => {{ {VIEW}.ui.marks = ''; {VIEW}.ui.x0 = 0; {VIEW}.ui.x1 = {page.head['lanes'][0]['events_count']}; {VIEW}.goTo({page.head['lanes'][0]['peak_event']}); return 1; }})()")
    near = [c["name"] for c in page.head["cards"] if c["room_bytes"] < 1.25 * page.head["lanes"][0]["peak_reserved_bytes"]]
    settle(browser)
    svg = browser.run(f"{VIEW}.pictureOf(0)")
    check(f"{name}: sizes of cards", svg.count('stroke-dasharray="1 4"') == len(near) and (not near or f">{near[-1]} " in svg), near)


def check_pictures(browser, name):
    settle(browser)
    for i in range(3):
        svg = browser.run(f"{VIEW}.pictureOf({i})")
        xml.etree.ElementTree.fromstring(svg)
        check(f"{name}: picture {i}", svg.count("<") > 10)
        check(f"{name}: rows {i}", len(browser.run(f"{VIEW}.rowsOf({i})")) > 1)


def check_widths(browser, name):
    for width in (420, 800, 2560):
        browser.size(width, 1200)
        settle(browser)
        wide = browser.run("document.scrollingElement.scrollWidth")
        check(f"{name}: {width} wide", wide <= width, wide)


def hostile(path):
    """A snapshot whose names are HTML, script and control characters."""
    bad = ["</script><script>window.taken = 1</script>", '"><img src=x onerror="window.taken = 1">', "<!--<script>", "]]>\u202e\x07&lt;b&gt;", "javascript:taken=1", "=cmd|' /C calc'!A0,=1+1"]
    entries, addr = [{"action": "segment_alloc", "addr": 1 << 40, "size": 20 << 20, "stream": 0, "time_us": 1, "frames": []}], 1 << 40
    for i, name in enumerate(bad):
        entries.append({"action": "alloc", "addr": addr + (i << 21), "size": 2 << 20, "stream": 0, "time_us": 10 + i,
                        "frames": [{"name": name, "filename": bad[-1 - i], "line": i + 1}, {"name": "main", "filename": name, "line": 2}]})
    blocks = [{"address": addr + (i << 21), "size": 2 << 20, "requested_size": 2 << 20, "state": "active_allocated", "frames": []} for i in range(len(bad))]
    blocks.append({"address": addr + (len(bad) << 21), "size": (20 << 20) - (len(bad) << 21), "requested_size": 0, "state": "inactive", "frames": []})
    segment = {"device": 0, "address": addr, "total_size": 20 << 20, "allocated_size": len(bad) << 21, "active_size": len(bad) << 21, "requested_size": len(bad) << 21,
               "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    with open(path, "wb") as f:
        pickle.dump({"segments": [segment], "device_traces": [entries], "allocator_settings": {}}, f, protocol=4)
    return bad


def check_hostile(program, browser, scratch):
    trace, html = os.path.join(scratch, "<b>&quot;.pickle"), os.path.join(scratch, "hostile.html")
    bad = hostile(trace)
    view(program, trace, html)
    with open(html, encoding="utf-8") as f:
        text = f.read()
    check("hostile: no name in the page itself", not any(b in text for b in bad[:3]))
    browser.open("file://" + html)
    settle(browser)
    shown = browser.run("document.querySelector('#live').textContent")
    check("hostile: names are text", "</script><script>window.taken = 1</script>" in shown, shown[:500])
    for i in range(3):
        svg = browser.run(f"{VIEW}.pictureOf({i})")
        check(f"hostile: picture {i}", not re.search("<(script|img)", svg) and xml.etree.ElementTree.fromstring(svg) is not None)
    check("hostile: nothing ran", browser.run("typeof window.taken === 'undefined' && !document.querySelector('#live img, #live script')"))
    rows = list(csv.reader(browser.run(f"{VIEW}.csvOf(1) + {VIEW}.csvOf(2)").splitlines()))
    check("hostile: rows", any("window.taken" in c for r in rows for c in r) and not any(c.startswith("=") for r in rows for c in r), rows)


def check_served(program, browser, trace):
    server = subprocess.Popen([program, "view", trace, "-q"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{28}/)", server.stdout.readline())
        port, path = int(address[1]), address[2]

        def ask(url, host=f"127.0.0.1:{port}", method="GET"):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            c.putrequest(method, url, skip_host=True)
            c.putheader("Host", host)
            c.endheaders()
            return c.getresponse().status

        got = [ask(path), ask("/"), ask("/" + "0" * 28 + "/"), ask(path, "evil.example"), ask(path + "b/99999"), ask(path + "b/../x"), ask(path, method="POST")]
        check("served: who may ask", got == [200, 403, 403, 403, 404, 404, 405], got)
        browser.open(address[0])
        settle(browser)
        check("served: blocks are there", browser.run(f"{VIEW}.state.blocks.length") > 0)
    finally:
        server.send_signal(signal.SIGINT)
        check("served: Ctrl-C ends it", server.wait(20) == 0, server.returncode)


def check_page(program, browser, trace, scratch):
    name, html = os.path.basename(trace), os.path.join(scratch, "page.html")
    view(program, trace, html, "--policies", "recorded;pytorch:expandable_segments:True")
    page = Page(html)
    events = list(page.events(page.head["lanes"][0]))
    for width, dark in ((1280, False), (1280, True)):
        browser.size(width, 1600, dark)
        seconds = browser.open("file://" + html)
    check(name + ": opens", seconds < 5, seconds)  # 0.3 s where nothing else runs
    settle(browser)
    check_columns(browser, events, name)
    check_states(browser, events, name)
    check_block(browser, page, events, name)
    check_pictures(browser, name)
    check_moves(browser, page, events, html, name)
    check_fingers(browser, events, name)
    check_comparison(browser, page, name)
    check_marks(browser, page, name)
    check_widths(browser, name)
    check(name + ": memory of the tab", browser.heap() < 300, browser.heap())


def check_all(program, traces):
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for trace in traces:
                check_page(program, browser, trace, scratch)
            check_hostile(program, browser, scratch)
            check("console", not browser.wrong, browser.wrong[:3])
            check_served(program, browser, traces[0])
    finally:
        browser.close()
