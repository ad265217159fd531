#!/usr/bin/env python3
"""CPU time of the client of `fullbore push` with and without a hash list, of 2,000 photographs of 2 MiB,
as in the other cases, to `fullbore serve`.

    Benchmarks/mhl.py PROGRAM [--files N] [--size BYTES] [--rounds N]

Prints the least CPU time of each way in seconds, and its ratio to that of a plain push. The goal for `--verify --mhl` is 1.25.
"""
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

WAYS = {"plain": [], "--mhl": ["--mhl"], "--verify": ["--verify"], "--verify --mhl": ["--verify", "--mhl"]}


def make(folder, files, size):
    """Writes files of different content, of `size` bytes each."""
    block = random.Random(1).randbytes(size)
    for number in range(files):
        path = folder / f"{100 + number // 500}FULL" / f"IMG_{number:04}.JPG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "big") + block[8:])


def push(program, options, card, scratch):
    """Pushes to a new server and returns the CPU time of the client in seconds."""
    received = scratch / "received"
    journal = scratch / "journal"
    for path in [received, journal]:
        shutil.rmtree(path, ignore_errors=True)
    journal.mkdir()
    received.mkdir()
    environment = dict(os.environ, XDG_STATE_HOME=str(journal), XDG_CONFIG_HOME=str(journal))
    server = subprocess.Popen(
        [program, "serve", str(received), "--listen", "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, text=True,
        env=environment)
    try:
        url = server.stdout.readline().split()[-1]
        client = subprocess.Popen(
            [program, "push", *options, "--quiet", str(card), url if url.endswith("/") else url + "/"], env=environment)
        _, status, usage = os.wait4(client.pid, 0)
        if status != 0:
            raise SystemExit(f"push {' '.join(options)}: wait status {status}")
    finally:
        server.terminate()
        server.wait()
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--size", type=int, default=2 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory(prefix="mhl-") as name:
        scratch = pathlib.Path(name)
        make(scratch / "CARD", arguments.files, arguments.size)
        best = {}
        for _ in range(arguments.rounds):
            for way, options in WAYS.items():
                seconds = push(program, options, scratch / "CARD", scratch)
                best[way] = min(seconds, best.get(way, seconds))
        for way, seconds in best.items():
            print(f"{way:16} {seconds:7.2f} s  {seconds / best['plain']:5.2f}")


if __name__ == "__main__":
    main()
