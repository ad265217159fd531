#!/usr/bin/env python3
"""Counts what `fullbore check` of many small files costs: requests, seconds, and memory of both ends.

    FULLBORE=$(scripts/build) Benchmarks/check.py [--files 100000] [--folders 100]

Copies the files to the folder of `fullbore serve`, and checks them over loopback three times: by content for the first
time, again with nothing changed, and with --again. Goal: at most 2 requests for 1,000 files. Takes 8 KiB of disk for each file, which are
deleted at the end.
"""
import argparse, os, pathlib, random, shutil, subprocess, sys, tempfile, time

FULLBORE = os.environ.get("FULLBORE") or sys.exit("FULLBORE names the binary to measure")


def make(card, files, folders):
    random.seed(1)
    for folder in range(folders):
        place = card / "DCIM" / f"{100 + folder}CARD"
        place.mkdir(parents=True)
        for number in range(files // folders):
            (place / f"IMG_{number:05}.JPG").write_bytes(random.randbytes(1000))


def peak(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=100)
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="fullbore-check-"))
    os.environ["FULLBORE_JOURNAL"] = str(work / "journal.sqlite")
    log = work / "log"
    server = None
    try:
        make(work / "card", options.files, options.folders)
        shutil.copytree(work / "card/DCIM", work / "in/DCIM")
        server = subprocess.Popen(
            [FULLBORE, "serve", work / "in", "--listen", "127.0.0.1:0", "--log", log], stdout=subprocess.PIPE, text=True)
        url = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        for name, more in [("first check", []), ("second check", []), ("check --again", ["--again"])]:
            time.sleep(1)  # the server writes its log once a moment
            before, began = log.read_text().count("\n"), time.time()
            check = subprocess.Popen([FULLBORE, "check", *more, work / "card/DCIM", url], stdout=subprocess.PIPE, text=True)
            said = check.stdout.read().strip()
            _, status, usage = os.wait4(check.pid, 0)
            elapsed = time.time() - began
            time.sleep(1)
            requests = log.read_text().count("\n") - before
            if os.waitstatus_to_exitcode(status) != 0:
                sys.exit(f"{name}: {said}")
            print(f"{name}: {requests} requests, {requests * 1000 / options.files:.2f} for 1,000 files; {elapsed:.1f} s; "
                  f"peak {usage.ru_maxrss / 1024:.0f} MiB here, {peak(server.pid):.0f} MiB at the server")
        print(said)
    finally:
        if server:
            server.terminate()
            server.wait()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
