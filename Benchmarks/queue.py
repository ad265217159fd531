#!/usr/bin/env python3
"""Measures how many items of a shared queue eight claimers claim and end in a second, by the number of rows.

  swift build -c release --product QueueBenchmark
  python3 Benchmarks/queue.py [ROWS ...]      10000 100000 1000000 when not given; 10000000 takes 8 GB of disk

It starts a private PostgreSQL (scripts/postgres), fills the queue with copies of one item in folders of 500, and runs eight
processes of QueueBenchmark for ten seconds at most. The items before the measured ones are done, as in an old queue.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLAIMERS = 8
SECONDS = 10
PROGRAM = os.environ.get("QUEUE_BENCHMARK") or ROOT / ".build/release/QueueBenchmark"


def psql(port, statement):
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"))
    environment = {**os.environ, "PGPASSWORD": "secret word"}
    command = [programs[-1], "-h", "127.0.0.1", "-p", str(port), "-U", "fullbore", "-d", "fullbore", "-qtAc", statement]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def measure(port, url, rows):
    destination = subprocess.run(
        [PROGRAM, url, "add"], check=True, capture_output=True, text=True).stdout.strip()
    waiting = min(rows, 100_000)
    # Rows that are done first, so that the table has `rows` of them while no more than `waiting` wait.
    for state, count in ((2, rows - waiting), (0, waiting - 1)):
        done = 0
        while done < count:
            batch = min(count - done, 200_000)
            psql(port, f"""
                INSERT INTO fullbore.queue_items
                  (place, destination, push, state, machine, length, version, source, record)
                SELECT (substr(md5(({done} + n) / 500 || 'folder'), 1, 8) || substr(md5(random()::text), 1, 24))::uuid, destination, push, {state}, machine, length, version, source, record
                FROM (SELECT * FROM fullbore.queue_items WHERE destination = {destination} ORDER BY id LIMIT 1) i,
                  generate_series(1, {batch}) n""")
            done += batch
    psql(port, "VACUUM ANALYZE fullbore.queue_items")
    claimers = [
        subprocess.Popen([PROGRAM, url, destination, str(SECONDS)], stdout=subprocess.PIPE, text=True)
        for _ in range(CLAIMERS)]
    results = [claimer.communicate()[0].split() for claimer in claimers]
    ended, elapsed = sum(int(r[0]) for r in results), max(float(r[1]) for r in results)
    told = psql(port, f"SELECT sum(count) FROM fullbore.queue_totals WHERE destination = {destination} AND state = 2")
    found = psql(port, f"SELECT count(*) FROM fullbore.queue_items WHERE destination = {destination} AND state = 2")
    assert told == found == str(rows - waiting + ended), (told, found, ended)
    print(f"{rows:>10,} rows: {ended:>8,} items in {elapsed:5.1f} s: {ended / elapsed:>8,.0f} items/s", flush=True)


def main():
    sizes = [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    folder = tempfile.mkdtemp(prefix="fullbore-queue-benchmark-")
    port = random.randrange(20_000, 32_000)
    server = subprocess.Popen(
        [ROOT / "scripts/postgres", "--temporary", folder, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        for rows in sizes:
            measure(port, f"postgres://fullbore:secret%20word@127.0.0.1:{port}/fullbore", rows)
            psql(port, "TRUNCATE fullbore.queue_items, fullbore.queue_totals, fullbore.queue_parts")
    finally:
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
