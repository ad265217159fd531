#!/usr/bin/env python3
"""Compares Fullbore with its rivals in interleaved rounds. Each goal is compared with the median of the rounds' ratios.

usage: bench.py [quick | all | CASE...] [--rounds N] [--with rclone] [--list]

quick   every case, 1 GiB and fewer files, two rounds: to see that nothing broke
all     the real sizes, five rounds (the default); writes results/DATE.md
CASE    one by name, see --list

FULLBORE is the path of the binary. FULLBORE_BENCH_DIR is the folder for data and logs (default: Benchmarks/work); the
server cases receive into /dev/shm. Compare ratios, not absolute times, which depend on other work on the machine.
"""
import argparse, datetime, shutil, sys
import harness, report
from cases import foundation, growth, loopback, s3, servers, shapes, slow, sources
from harness import GiB, HERE, SHM, WORK

CASES = {f.__name__.replace("_", "-"): f for f in (
    loopback.large, loopback.tus_large, loopback.forms, loopback.photos, loopback.film_roll, loopback.small, loopback.crowd,
    loopback.tls_large, loopback.tls_photos, sources.urls, sources.databases, sources.gallery, sources.slow_url,
    slow.slow_photos, slow.slow_small, slow.slow_tls, slow.slow_pipe, slow.parallel,
    s3.s3_large, s3.s3_photos, s3.s3_small, s3.s3_slow_photos, s3.s3_slow_small,
    servers.server, servers.connections, servers.crowded, servers.attacked, servers.unfinished,
    foundation.streams, foundation.urlsession, growth.start, growth.growth, shapes.shapes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="quick | all | CASE")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--with", dest="rivals", action="append", default=[], choices=["rclone"])
    parser.add_argument("--shape", dest="shapes", action="append", choices=list(shapes.SHAPES), metavar="MBITxRTT")
    parser.add_argument("--protocol", dest="protocols", action="append", choices=list(shapes.PROTOCOLS))
    parser.add_argument("--work", dest="works", action="append", choices=["large", "small"])
    parser.add_argument("--list", action="store_true")
    o = parser.parse_intermixed_args()
    if o.list:
        for name, case in CASES.items():
            print(f"{name:12} {case.__doc__}")
        return 0
    quick, names = "quick" in o.cases, [c for c in o.cases if c not in ("quick", "all")]
    if unknown := [n for n in names if n not in CASES]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    o.quick = quick
    o.rounds = o.rounds or (2 if quick else 5)
    o.large, o.crowd = (GiB, 2000) if quick else (4 * GiB, 20000)
    o.rclone = "rclone" in o.rivals
    harness.prepare()
    SHM.mkdir()
    results = []
    try:
        # On some links this case would take hours. It runs only if it is named, together with suitable links.
        for name in names or [name for name in CASES if name != "shapes"]:
            print(f"{name}: {CASES[name].__doc__}", flush=True)
            result = CASES[name](o)
            results += result if isinstance(result, list) else [result]
    finally:
        shutil.rmtree(SHM, ignore_errors=True)
    today = datetime.date.today().isoformat()
    complete = not quick and not names
    path = HERE / "results" / f"{today}.md" if complete else WORK / "last.md"
    path.parent.mkdir(exist_ok=True)
    text = report.write(results, today, path)
    print(f"\n{text}\nwritten to {path}")
    return 0 if all(goal[-1] for result in results for goal in result.goals) else 1


if __name__ == "__main__":
    sys.exit(main())
