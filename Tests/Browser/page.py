#!/usr/bin/env python3
"""Tests of the page of `fullbore serve --share` in Chromium.

    page.py short          takes less than two minutes
    page.py long           all checks, and those with many and very large files
    page.py NAME...        runs only these checks; page.py --list names them

FULLBORE names the binary. FULLBORE_SCREENSHOTS names a folder for pictures of the page; docs/pictures/share copies some into docs.
"""
import traceback

from playwright.sync_api import Error, sync_playwright

import attacks, details, firefox, guests, heavy, lists, looks, phones, stories
from visit import *

SHORT = [stories.phone, stories.reload, stories.another, stories.portal, stories.restart, stories.offline, stories.tabs, stories.frozen, stories.pause, details.code,
         details.names, details.folders, details.keyboard, details.limits, details.full, details.dropped, lists.listing,
         lists.gallery, lists.calm, guests.updates, guests.silence, guests.total, guests.words, guests.again, phones.awake, phones.camera,
         attacks.strangers, looks.appearance]
LONG = [stories.large, guests.once, details.room, heavy.thousand, heavy.film, heavy.handles, firefox.firefox]


def main(arguments):
    checks = {check.__name__: check for check in SHORT + LONG}
    if arguments == ["--list"]:
        return print("\n".join(f"{name:12} {check.__doc__.splitlines()[0]}" for name, check in checks.items()))
    chosen = SHORT if arguments == ["short"] else SHORT + LONG if arguments == ["long"] else [checks[name] for name in arguments]
    if not chosen:
        raise SystemExit(__doc__)
    results = Results("Browser")
    if not os.access(CHROMIUM, os.X_OK):
        for check in chosen:
            results.add("skipped", check.__name__, f"there is no {CHROMIUM}: scripts/bootstrap test, or FULLBORE_CHROMIUM")
        results.finish()
    waiting = list(chosen)

    def work():
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            while waiting:
                play(browser, waiting.pop(0), results)
            browser.close()
    # Most checks wait for a slow link most of the time, so three run at once. The heavy ones measure memory.
    workers = [threading.Thread(target=work) for _ in range(3 if chosen == SHORT else 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    results.finish()


def play(browser, check, results):
    begin = time.monotonic()
    with scratch() as folder:
        try:
            check(browser, folder)
            results.add("passed", check.__name__, "")
        except Skipped as reason:
            results.add("skipped", check.__name__, str(reason))
        except (Failure, Error, OSError) as failure:
            results.add("failed", check.__name__, str(failure))
            if os.environ.get("FULLBORE_TRACE"):
                where = traceback.extract_tb(failure.__traceback__)
                print("  at", " ".join(f"{step.filename.rsplit('/', 1)[1]}:{step.lineno}" for step in where if "Browser/" in step.filename))
    if os.environ.get("FULLBORE_TRACE"):
        print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


main(sys.argv[1:])
