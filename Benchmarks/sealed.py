#!/usr/bin/env python3
"""What sealing costs: one large file by PUT, and many small ones, to a server of this machine.

    sealed.py [MiB of the large file] [number of small files]       4096 and 20000, unless they are given

The large file: sealed by fullbore, not sealed by fullbore, `age | curl -T -`, and sealed.c, which does nothing but encrypt and send.
The small files, of 4 KiB: sealed and not. FULLBORE names the program. Each line has the seconds of the fastest of three runs.
"""
import os, pathlib, re, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Tests/Robustness"))
from support import FULLBORE, MiB, Process, free_port

RUNS = 3


def timed(name, folder, store, command, count):
    best = None
    for run in range(RUNS):
        for old in store.iterdir():
            if not old.name.startswith("."):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        environment = dict(os.environ, FULLBORE_JOURNAL=str(folder / f"{name.replace(' ', '-').replace('/', '-')}-{run}.sqlite"))
        began = time.monotonic()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, shell=isinstance(command, str))
        seconds = time.monotonic() - began
        arrived = sum(1 for path in store.rglob("*") if path.is_file() and ".fullbore" not in path.parts)
        if arrived != count:
            raise SystemExit(f"{name}: {arrived} files have arrived, and not {count}")
        best = min(best or seconds, seconds)
    return best


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
            for name, command, count in rows:
                seconds = timed(name, folder, store, command, count)
                amount = f"{size / seconds:.0f} MiB/s" if name.startswith("large") else f"{small / seconds:.0f} files/s"
                print(f"{name:28} {seconds:8.2f} s   {amount}", flush=True)


main(sys.argv[1:])
