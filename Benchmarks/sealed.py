#!/usr/bin/env python3
"""What sealing costs: one large file by PUT, and many small ones, to a server of this machine.

    sealed.py [MiB of the large file] [number of small files]       4096 and 20000, unless they are given

The large file: sealed by fullbore, not sealed by fullbore, `age | curl -T -`, and sealed.c, which does nothing but encrypt and send.
The small files, of 4 KiB: sealed and not. FULLBORE names the program. The ways take turns. Each line has the least elapsed time and
the least CPU time of the client, and its highest memory, of three runs. The goals: for the large file at most 1.3 of the CPU time of
sealed.c, at most half the time of `age | curl`, and at most 32 MiB; for a small file at most 60 microseconds more than without a seal.
"""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Tests/Robustness"))
from support import FULLBORE, MiB, Process, free_port

RUNS = 3


def timed(number, run, folder, store, command, count):
    """Empties the store, runs the command, and returns its elapsed time, its CPU time and the peak memory of its largest process."""
    for old in store.iterdir():
        if not old.name.startswith("."):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    environment = dict(os.environ, FULLBORE_JOURNAL=str(folder / f"{number}-{run}.sqlite"))
    report = folder / "cost.json"
    words = ["sh", "-c", command] if isinstance(command, str) else command
    subprocess.run([folder / "timed", report, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    cost = json.loads(report.read_text())
    if cost["status"] != 0:
        raise SystemExit(f"{command}: exit status {cost['status']}")
    arrived = sum(1 for path in store.rglob("*") if path.is_file() and ".fullbore" not in path.parts)
    if arrived != count:
        raise SystemExit(f"{command}: {arrived} files have arrived, and not {count}")
    return cost["wall"], cost["cpu"], cost["peak"] / MiB


def main(arguments):
    size = int(arguments[0]) if arguments else 4096
    small = int(arguments[1]) if len(arguments) > 1 else 20_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("FULLBORE_ROBUSTNESS_DIR", "/var/tmp")) as name:
        folder = pathlib.Path(name)
        store, key, film, many = folder / "store", folder / "key.txt", folder / "film.mov", folder / "many"
        store.mkdir()
        many.mkdir()
        subprocess.run(["age-keygen", "-o", key], check=True, capture_output=True)
        recipient = re.search(r"age1\w+", key.read_text()).group(0)
        with open(film, "wb") as file:
            for _ in range(size):
                file.write(os.urandom(MiB))
        for index in range(small):
            (many / f"{index}.jpg").write_bytes(os.urandom(4096))
        sealer = folder / "sealed"
        subprocess.run(["cc", "-O2", "-Wall", "-o", folder / "timed", HERE / "timed.c"], check=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", sealer, HERE / "sealed.c", "-lcrypto"], check=True)
        port = free_port()
        with Process([FULLBORE, "serve", store, "--listen", f"127.0.0.1:{port}"], port, folder / "log.txt"):
            url = f"http://127.0.0.1:{port}/"
            push = [FULLBORE, "push", "--quiet"]
            rows = [
                ("large, sealed by fullbore", [*push, "--seal", recipient, film, f"put+{url}"], 1),
                ("large, not sealed", [*push, film, f"put+{url}"], 1),
                ("large, age | curl", f"age -r {recipient} {film} | curl -sS -f -T - {url}film.mov.age", 1),
                ("large, sealed.c", [sealer, film, str(port), "/film.mov.age"], 1),
                ("small, sealed by fullbore", [*push, "--seal", recipient, f"{many}/", url], small),
                ("small, not sealed", [*push, f"{many}/", url], small),
            ]
            figures_of = {}
            for run in range(RUNS):
                for number, (name, command, count) in enumerate(rows):
                    figures = timed(number, run, folder, store, command, count)
                    before = figures_of.get(name, figures)
                    figures_of[name] = (*map(min, figures[:2], before[:2]), max(figures[2], before[2]))
        print(f"{'':28} {'elapsed':>9} {'CPU':>9} {'memory':>10}")
        for name, (seconds, cpu, memory) in figures_of.items():
            print(f"{name:28} {seconds:7.2f} s {cpu:7.2f} s {memory:6.1f} MiB")
        sealed, plain, pipe, program = (figures_of[name] for name, _, _ in rows[:4])
        print(f"large: CPU {sealed[1] / program[1]:.2f} of sealed.c, time {sealed[0] / pipe[0]:.2f} of age | curl")
        more = [(figures_of[rows[4][0]][index] - figures_of[rows[5][0]][index]) / small * 1e6 for index in (0, 1)]
        print(f"small: {more[0]:.0f} microseconds more for each file, {more[1]:.0f} of CPU")


main(sys.argv[1:])
