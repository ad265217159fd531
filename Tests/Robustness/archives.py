#!/usr/bin/env python3
"""Folders as archives (`?archive=zip` and `tar` of `fullbore serve`), opened by other programs: Python's own modules, and
unzip, tar, bsdtar and 7z where they are installed. Also fetched in pieces with the server killed between them.

    archives.py short         a few seconds
    archives.py long          a film beyond 4 GiB and 100,000 files; a few minutes, 15 GB of disk
"""
import hashlib, http.client, random, shutil, subprocess, sys, tarfile, zipfile

from urllib.parse import quote

from support import *

TOKEN = "robustness-test-token"
MEMORY = 64 * MiB


def request(server, path, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}", **(headers or {})})
    return connection, connection.getresponse()


def fetch(server, path, file):
    connection, answer = request(server, path)
    if answer.status != 200:
        raise Failure(f"{path}: {answer.status} {answer.read()[:200]}")
    with open(file, "wb") as out:
        shutil.copyfileobj(answer, out, MiB)
    connection.close()
    if file.stat().st_size != int(answer.headers["Content-Length"]):
        raise Failure(f"{path}: {file.stat().st_size} bytes instead of {answer.headers['Content-Length']}")


def fetch_in_pieces(server, path, file, size):
    """Reads a part of each answer, breaks the connection, kills the server now and then, and goes on where it was."""
    dice, at, etag, pieces = random.Random(7), 0, None, 0
    with open(file, "wb") as out:
        while at < size:
            headers = {"Range": f"bytes={at}-", "If-Range": etag} if at else {}
            connection, answer = request(server, path, headers)
            if answer.status != (206 if at else 200):
                raise Failure(f"{path}: piece at {at} was answered with {answer.status}")
            etag = answer.headers["ETag"]
            piece = answer.read(dice.randint(1, max(2, size // 5)))
            out.write(piece)
            at += len(piece)
            pieces += 1
            connection.close()
            if pieces % 3 == 0:
                server.kill()
                server.start()
    return pieces


def digest(file):
    sum = hashlib.sha256()
    while piece := file.read(MiB):
        sum.update(piece)
    return sum.hexdigest()


def compare(folder, prefix, names, opened):
    """`names` and `opened` are those of the archive."""
    wanted = {prefix + "/" + p.relative_to(folder).as_posix(): p for p in folder.rglob("*")
              if not any(part.startswith(".") for part in p.relative_to(folder).parts)}
    got = {name.rstrip("/") for name in names if name.rstrip("/") != prefix}
    if got != set(wanted):
        raise Failure(f"the archive has other names: {sorted(got ^ set(wanted))[:5]}")
    for name, path in wanted.items():
        if path.is_file():
            with open(path, "rb") as one, opened(name) as other:
                if digest(one) != digest(other):
                    raise Failure(f"{name} has other bytes in the archive")


def check_zip(folder, prefix, file):
    with zipfile.ZipFile(file) as archive:
        compare(folder, prefix, archive.namelist(), archive.open)


def check_tar(folder, prefix, file):
    with tarfile.open(file) as archive:
        compare(folder, prefix, archive.getnames(), archive.extractfile)


def others(file):
    """Programs that check the whole archive. bsdtar reads it as a stream too, where the directory comes too late."""
    commands = [["bsdtar", "-tvf", file], ["7z", "t", file]]
    commands += [["unzip", "-tq", file]] if file.suffix == ".zip" else [["tar", "-tvf", file]]
    used = []
    for command in commands:
        if shutil.which(command[0]):
            result = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace")
            if result.returncode:
                raise Failure(f"{command[0]}: {result.stdout[-500:]} {result.stderr[-500:]}")
            used.append(command[0])
    if shutil.which("bsdtar"):
        with open(file, "rb") as stream:
            result = subprocess.run(["bsdtar", "-xOf", "-"], stdin=stream, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if result.returncode:
            raise Failure(f"bsdtar from a pipe: {result.stderr[-500:]}")
    return used


def fill(folder, is_long):
    (folder / "Größe – Übung").mkdir(parents=True)
    (folder / "写真/空").mkdir(parents=True)
    dice = random.Random(3)
    for number in range(200):
        (folder / f"写真/写真 {number}.jpg").write_bytes(dice.randbytes(dice.randint(0, 20000)))
    (folder / "Größe – Übung" / ("ä" * 120)).write_bytes(b"long")
    deep = folder / "/".join("d" * 60 for _ in range(4))
    deep.mkdir(parents=True)
    (deep / "deep").write_bytes(b"deep")
    old = folder / "from 1969"
    old.write_bytes(b"old")
    os.utime(old, (-100000, -100000))
    (folder / ".hidden").write_bytes(b"hidden")
    if is_long:
        sparse_film(folder / "film.mov", 5 * GiB, "film")
        photographs(folder / "many", 100_000, 100, "many")


def check(is_long):
    results = Results("archives")
    with scratch() as work:
        store = work / "store"
        folder = store / "写真 2026"
        folder.mkdir(parents=True)
        (store / "empty").mkdir()
        fill(folder, is_long)
        with serve(store, work / "log", "--share", "--download", "--json") as server:
            for kind, check_it in (("zip", check_zip), ("tar", check_tar)):
                for place, prefix in ((folder, folder.name), (store / "empty", "empty")):
                    name = f"{kind} of {prefix}"
                    try:
                        path = f"/{quote(prefix)}/?archive={kind}"
                        whole, pieces = work / f"whole.{kind}", work / f"pieces.{kind}"
                        fetch(server, path, whole)
                        check_it(place, prefix, whole)
                        used = others(whole)
                        peak = peak_memory(server.process.pid)
                        if peak > MEMORY:
                            raise Failure(f"the server had {peak / MiB:.0f} MiB of memory")
                        count = fetch_in_pieces(server, path, pieces, whole.stat().st_size)
                        if not same_bytes(whole, pieces):
                            raise Failure("the archive from pieces has other bytes")
                        size = whole.stat().st_size
                        results.add("passed", name, f"{size} bytes, {count} pieces, {peak / MiB:.0f} MiB; {' '.join(used)}")
                    except Failure as failure:
                        results.add("failed", name, str(failure))
    results.finish()


if sys.argv[1:] not in (["short"], ["long"]):
    raise SystemExit(__doc__)
check(sys.argv[1] == "long")
