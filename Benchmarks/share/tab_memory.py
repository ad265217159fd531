#!/usr/bin/env python3
"""Measures the private memory of the page's tab while it sends many photos, for variants of the page, in alternating runs.

    FULLBORE=PROGRAM .venv/bin/python Benchmarks/share/tab_memory.py [--rounds N] [--link loopback|slow] [--photos N] NAME=FOLDER...

A variant takes the files that FOLDER has in place of the program's own; without FOLDER, it is the program's page.
"""
import argparse, contextlib, mimetypes, pathlib, statistics, tempfile

from share import HOST, MiB, fullbore, harness, make_photos, open_page, send, tab_memory


def measure(changed, paths, link):
    """The memory before the first file, and the peak, in MiB."""
    with tempfile.TemporaryDirectory(prefix="fullbore-share-", dir="/dev/shm") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)

        def prepare(page):
            for file in pathlib.Path(changed).iterdir() if changed else []:
                kind = mimetypes.guess_type(file)[0]
                page.route(f"**/.fullbore-page/{file.name}",
                           lambda route, file=file, kind=kind: route.fulfill(path=file, content_type=kind))

        _, page, selector = open_page(stack, fullbore, folder, link, HOST, prepare)
        before = tab_memory()
        watch = send(page, selector, folder, paths, 600)
        return before, watch.peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--link", choices=["loopback", "slow"], default="loopback")
    parser.add_argument("--photos", type=int, default=300, help="their number; each has 2 MiB")
    parser.add_argument("variants", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args()
    data = harness.DataSet(f"share-photos-{options.photos}", [2 * MiB] * options.photos).make()
    make_photos(data)
    data.warm()
    variants = [variant.split("=", 1) for variant in options.variants]
    peaks = {name: [] for name, _ in variants}
    for turn in range(options.rounds):
        for name, changed in variants if turn % 2 == 0 else reversed(variants):
            before, peak = measure(changed, data.paths(), options.link)
            peaks[name].append(peak)
            print(f"{name}: {before:.0f} MiB before, {peak:.0f} at most", flush=True)
    for name, found in peaks.items():
        print(f"{name}: median {statistics.median(found):.0f} MiB")


main()
