"""Counts instructions with valgrind. The counts are the same on every machine with the same libraries, so a regression is
visible at once.

usage: FULLBORE=... python3 Benchmarks/instructions.py [--update]

Compares the counts with instructions.json, which `--update` replaces. Fails if a count grew by more than a tenth.
"""
import json, os, pathlib, re, subprocess, sys, tempfile
import harness
from harness import FULLBORE, HERE, KiB, MiB, WORK, DataSet, Server

KNOWN = HERE / "instructions.json"
# Threads interleave differently in each run, so a few percent are random, and more on a busy machine. A regression is
# in every run: an increase is counted again, and the lowest count is used.
SLACK = 1.1
MOST_RUNS = 4
# The cost of a file is the difference between two counts, and so less certain: both are counted again if it is too high.
MOST_ROUNDS = 4


def count(command, journal):
    """Millions of instructions of a program and all its threads."""
    environment = dict(os.environ, FULLBORE_JOURNAL=str(journal))
    run = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *map(str, command)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", run.stderr)
    if run.returncode != 0 or not found:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {run.returncode}:\n{run.stderr[-2000:]}")
    return int(found[1].replace(",", "")) / 1e6


# The cost of a file of 50 KiB is the difference between many and few files, for each of these cases.
PROTOCOLS = ("tus", "resumable", "form")


def works(hole, secure, ours):
    """The counted cases: the start, files sent in one request, a file sent with `sendfile`, a file over TLS, and
    files by the other protocols to Fullbore's own server, which supports all of them."""
    few, many = (DataSet(f"counted-{n}", [50 * KiB] * n).make() for n in (100, 1000))
    large = DataSet("counted-large", [64 * MiB]).make().paths()[0]
    push = [FULLBORE, "push", "--quiet"]
    counted = {
        "start": [FULLBORE, "--version"],
        "100 x 50 KiB": [*push, f"{few.folder}/", f"put+{hole.url}/up/"],
        "1,000 x 50 KiB": [*push, f"{many.folder}/", f"put+{hole.url}/up/"],
        "64 MiB": [*push, large, f"put+{hole.url}/up/"],
        "64 MiB, TLS": [*push, "--cacert", secure.certificate, large, f"put+{secure.url}/up/"],
    }
    for protocol in PROTOCOLS:
        for data, count in ((few, "100"), (many, "1,000")):
            # Each count uses a new folder, because files that already exist there are another kind of work.
            url = f"{protocol}+{ours.url}/{protocol}{count}-%d/"
            counted[f"{count} x 50 KiB, {protocol}"] = [*push, f"{data.folder}/", url]
    return counted


class Case:
    """A command and the lowest count of its runs."""

    def __init__(self, command, known):
        self.command, self.known, self.runs, self.least = command, known, 0, None

    def run(self):
        with tempfile.TemporaryDirectory(dir=WORK / "tmp") as tmp:
            command = [str(word).replace("%d", str(self.runs)) for word in self.command]
            counted = count(command, pathlib.Path(tmp) / "journal.sqlite")
        self.runs += 1
        self.least = counted if self.least is None else min(counted, self.least)

    def run_until_known(self):
        """One run is sufficient if its count is not above the known one."""
        self.run()
        while self.runs < MOST_RUNS and self.known is not None and self.least > self.known * (1 + SLACK) / 2:
            self.run()


def cost_of_a_file(cases, suffix, known):
    """The difference between a thousand files and a hundred, for each file."""
    few, many = (cases[f"{count} x 50 KiB{suffix}"] for count in ("100", "1,000"))
    rounds = 1
    while True:
        cost = round((many.least - few.least) / 900, 3)
        if known is None or cost <= known * SLACK or rounds == MOST_ROUNDS:
            return cost
        few.run()
        many.run()
        rounds += 1


def measured(known):
    harness.prepare()
    with (
        tempfile.TemporaryDirectory(dir=WORK / "tmp") as folder,
        harness.hole() as hole,
        harness.hole(harness.certificate()) as secure,
        Server([FULLBORE, "serve", folder, "--listen", "127.0.0.1:0"]) as ours,
    ):
        cases = {name: Case(command, known.get(name)) for name, command in works(hole, secure, ours).items()}
        for case in cases.values():
            case.run_until_known()
        costs = {}
        for suffix in ("", *(f", {protocol}" for protocol in PROTOCOLS)):
            name = f"a file of 50 KiB{suffix}"
            costs[name] = cost_of_a_file(cases, suffix, known.get(name))
        return {name: round(case.least, 1) for name, case in cases.items()} | costs


def take_precedence():
    """Other stages run at the same time, and waiting for the processor costs instructions: a waiting thread polls."""
    try:
        os.nice(-15)
    except PermissionError:
        pass  # Only root may do this. More of the runs are then counted again.


def main():
    take_precedence()
    known = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    counts = measured(known)
    print("| work | million instructions | known | ratio |\n|---|---|---|---|")
    grown = 0
    for name, value in counts.items():
        ratio = value / known[name] if name in known else 1
        grown += ratio > SLACK
        print(f"| {name} | {value:,} | {known.get(name, '-')} | {ratio:.3f}{' **more**' if ratio > SLACK else ''} |")
    if "--update" in sys.argv[1:]:
        KNOWN.write_text(json.dumps(counts, indent=2) + "\n")
        return 0
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
