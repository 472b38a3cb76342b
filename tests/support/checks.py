# SPDX-License-Identifier: Apache-2.0
"""Counts checks for scripts of tests: says which failed, and ends with "N passed, N failed, N skipped"."""
passed = failed = skipped = 0


def check(what, ok, detail=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what} {detail}")


def skip(what):
    global skipped
    skipped += 1
    print(f"skipped: {what}")


def done():
    """The last line; the exit status."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0
