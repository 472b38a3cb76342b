#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser, headless Chromium: run.py PROGRAM

Charts keep every peak (peaks.py). Pages of one trace, of one that runs out of memory, of two
devices, of several traces, and of other commands are opened at several widths, dark, and as
printed: the first page in all ways, the others in two (every night: in all). PROBE looks for what
sticks out, labels that leave their chart, and text that is hard to see; the browser says which
scripts failed. Links must lead to files. Skipped without Chromium or gnuplot. Last line: "N passed,
N failed, N skipped"."""
import glob
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support"), os.path.join(HERE, "../view")]
import browser as chromium  # noqa: E402
import peaks  # noqa: E402
from checks import check, done, skip  # noqa: E402

TRACES = os.path.join(HERE, "../../traces")
SCALE = os.path.join(HERE, "../cli/data/scale")
ALL_WAYS = ((1280, False, False), (800, False, False), (500, False, False), (1280, True, False), (680, False, True))
WAYS = ALL_WAYS if os.environ.get("FRAG_TEST_NIGHTLY") else ((500, False, False), (1280, True, False))

# what is wrong with a page at this width, and how many charts, labels and tables it has
PROBE = r"""(() => {
	const wide = document.documentElement.clientWidth, say = [];
	const name = e => e.tagName.toLowerCase() + (e.className && e.className.baseVal === undefined ? '.' + e.className : '');
	const luminance = c => {
		const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (!/, 0\)$/.test(c) && c !== 'transparent')
				return luminance(c);
		}
		return 1;
	};
	const contrast = (e, ink) => (Math.max(luminance(ink), behind(e)) + 0.05) / (Math.min(luminance(ink), behind(e)) + 0.05);
	if (document.documentElement.scrollWidth > wide)
		say.push(`page is ${document.documentElement.scrollWidth} wide, the window ${wide}`);
	/* what sticks out, unless it scrolls within itself */
	for (const e of document.querySelectorAll('main *')) {
		if (e.closest('svg') || e.closest('.scroll table'))
			continue;
		if (e.getBoundingClientRect().right > wide + 1)
			say.push(`${name(e)} ends at ${e.getBoundingClientRect().right}`);
		if (e.children.length === 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display === 'block')
			say.push(`${name(e)} cuts its text: ${e.textContent.slice(0, 60)}`);
	}
	for (const e of document.querySelectorAll('.scroll'))
		if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'auto')
			say.push('a table can not be scrolled');
	/* charts: there, and no label beyond the edge */
	const charts = document.querySelectorAll('figure svg');
	for (const svg of charts) {
		const box = svg.getBoundingClientRect(), title = svg.getAttribute('aria-label');
		if (box.width < 200 || box.height < 100 || !title)
			say.push(`a chart is ${box.width} x ${box.height}: ${title}`);
		for (const t of svg.querySelectorAll('text')) {
			const b = t.getBoundingClientRect(), text = t.textContent.trim();
			if (b.width && (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1))
				say.push(`label '${text}' of '${title.slice(0, 40)}' leaves its chart`);
			/* figures may lie on a coloured cell */
			if (/[a-z]/.test(text) && contrast(t, getComputedStyle(t).fill) < 3)
				say.push(`label '${text}' is hard to see`);
		}
	}
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	if (new Set(ids).size !== ids.length)
		say.push('an id is there twice');
	for (const e of document.querySelectorAll('h1,h2,p,td,th,dt,dd,a,code,pre,figcaption,.tile b,.tile span'))
		if (e.textContent.trim() && contrast(e, getComputedStyle(e).color) < 4.5)
			say.push(`${name(e)} is hard to see: ${e.textContent.slice(0, 40)}`);
	return { say: [...new Set(say)], charts: charts.length, labels: document.querySelectorAll('figure svg text').length, tables: document.querySelectorAll('table').length };
})()"""


def look(browser, page, width, dark, paper):
    browser.size(width, 900, dark)
    browser.ask("Emulation.setEmulatedMedia", media="print" if paper else "",
                features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    browser.wrong.clear()
    browser.ask("Page.navigate", url="file://" + os.path.abspath(page))
    until = time.time() + 60
    while not browser.run("document.readyState === 'complete' && (document.getElementById('live')?.dataset.ready ?? '1') === '1'"):
        if time.time() > until:
            return {"say": ["is not ready"], "charts": 0, "labels": 1, "tables": 1}
        time.sleep(0.05)
    found = browser.run(PROBE)
    found["say"] += browser.wrong
    return found


def wrong_links(page, text):
    """Files it names are there, and nothing comes from elsewhere."""
    out = re.findall(r"url\((?:https?:|//)[^)]*\)|@import", text)
    for link in {html.unescape(a) for a in re.findall(r'(?:href|src)="([^"#]+)"', text)}:
        if link.startswith("http://www.w3.org/"):
            continue
        if "://" in link or link.startswith("/") or not os.path.exists(os.path.join(os.path.dirname(page), link)):
            out.append(link)
    return out


def check_page(browser, name, page, least, ways=WAYS):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for way in ways:
        found = look(browser, page, *way)
        check(f"{name}: {way}", not found["say"] and found["labels"] > 0 and (found["tables"] > 0 or not least), found)
    check(f"{name}: links", not wrong_links(page, text), wrong_links(page, text))
    check(f"{name}: charts", text.count("<figure>") >= least, text.count("<figure>"))
    # on a telephone of 400 pixels charts come out at 384: no letter is below 9
    check(f"{name}: charts at 400 pixels", all(int(w) <= 584 for w in re.findall(r'<svg [^>]*viewBox="0 0 (\d+)', text)) and
          all(float(s) * 384 / 560 >= 9 for s in re.findall(r'font-size="([0-9.]+)"', text)))
    check(f"{name}: titles are findings", not re.search(r"(?i)(aria-label=\"|font-weight=\"bold\"[^>]*>)[^\"<]*(peak memory by|by call site[\"<]|before and after)", text))


def pages(program, browser):
    def run(*command):
        ran = subprocess.run([program, *command], capture_output=True, text=True, check=False)
        check(" ".join(command[:2]), ran.returncode <= 1, ran.stderr[-300:])

    def traces(*names):
        return [os.path.join(TRACES, n + ".cft") for n in names]

    run("compare", *traces("gnn.default"), "--policies", "all; pytorch:roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:512", "--formats", "svg", "--out", "many")
    run("compare", *traces("leak.frames"), "--capacity", "3G", "--pdf", "--out", "oom")
    run("compare", *traces("modelpar.default"), "--policies", "pytorch; pytorch:expandable_segments:True", "--formats", "svg", "--out", "devices")
    run("compare", *traces("leak.frames", "streams.default"), "--policies", "pytorch; buddy", "--formats", "svg", "--out", "several")
    run("explain", *traces("leak.frames"), "--out", "explain")
    run("diff", *traces("gnn.default", "gnn.expandable"), "--out", "diff")
    run("scale", "--at", "2,4,8", *(os.path.join(SCALE, f"batch{n}.cft") for n in (2, 4, 8)), "--to", "32", "--out", "scale")
    run("sweep", *traces("leak.frames", "gnn.default", "modelpar.default"), "-o", "fleet.sqlite")
    subprocess.run([program, "fleet", "fleet.sqlite", "--out", "fleet"], capture_output=True, check=False)
    check_page(browser, "many policies", "many/report.html", 10, ALL_WAYS)
    for name, least in (("oom", 8), ("devices", 18), ("several", 1), ("explain", 0), ("diff", 0), ("scale", 0), ("fleet", 0)):
        check_page(browser, name, glob.glob(name + "/*.html")[0], least)
    with open("several/leak.frames/report.html", encoding="utf-8") as f:
        check("one of several: links", not wrong_links("several/leak.frames/report.html", f.read()))
    with open("oom/charts.pdf", "rb") as f:
        check("all charts in one file", f.read(5) == b"%PDF-")
    with open("devices/report.html", encoding="utf-8") as f:
        check("what to set", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in f.read())


def main():
    program = os.path.abspath(sys.argv[1])
    program = os.path.join(program, "cufrag") if os.path.isdir(program) else program
    if os.environ.get("FRAG_TEST_QUICK") or not shutil.which("gnuplot"):
        skip("no gnuplot, or the quick tests")
        return done()
    peaks.check_all(program, sorted(glob.glob(os.path.join(os.path.realpath(TRACES), "*.cft"))))
    if not chromium.find():
        skip("no chromium (Debian package chromium)")
        return done()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        browser = chromium.Browser()
        try:
            pages(program, browser)
        finally:
            browser.close()
            os.chdir("/")
    return done()


if __name__ == "__main__":
    sys.exit(main())
