"""What is sent is no file: a URL, a database, a camera roll."""
import random, sqlite3, statistics, sys
import harness
from cases import growth
from harness import FULLBORE, MiB, WORK, DataSet, measure
from result import Result, bind, own_costs, rounds


def urls(o):
    """one large file from a URL to a PUT, discarded by the server: against `curl | curl -T -`"""
    (data, path), result = harness.large_file(o), Result(f"{o.large >> 30} GiB from one server to another")
    with harness.nginx(data.folder) as source, harness.hole() as hole:
        there, url = f"{source.url}/{path.relative_to(data.folder)}", hole.url
        pipe = f"curl -sSf '{there}' | curl -sSf -H Expect: -o /dev/null -T - '{url}/up/{path.name}'"
        clients = {
            "curl | curl -T -": ["bash", "-c", pipe],
            "fullbore": [FULLBORE, "push", "--quiet", there, f"put+{url}/up/"]}
        rounds(result, {k: bind(k, c, data, url) for k, c in clients.items()}, o.rounds)
    result.goal("time / curl's", result.ratio("fullbore", "curl | curl -T -", "wall"), "<=", 1)
    result.goal("CPU per GB / curl's", result.ratio("fullbore", "curl | curl -T -", "cpu_per_gb"), "<=", 1)
    own_costs(result)
    return result


def slow_url(o):
    """128 MiB from a URL behind a link to a PUT behind another one of the same speed: against a file over one of them"""
    rtt_ms, mbit, size = 20, 200, 128 * MiB
    data = DataSet("clip", [size]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"a URL of {size // MiB} MiB, {mbit} Mbit/s there and here, {rtt_ms} ms round trip")
    with harness.nginx(data.folder) as source, harness.hole() as hole, \
            harness.slowlink(source.url, rtt_ms, mbit) as there, harness.slowlink(hole.url, rtt_ms, mbit) as here:
        url = f"{there.url}/{path.relative_to(data.folder)}"
        target = f"{here.url}/up/{path.name}"
        clients = {
            "a file": [FULLBORE, "push", "--quiet", path, f"put+{target}"],
            "curl | curl -T -": ["bash", "-c", f"curl -sSf '{url}' | curl -sSf -H Expect: -o /dev/null -T - '{target}'"],
            "fullbore": [FULLBORE, "push", "--quiet", url, f"put+{target}"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    result.goal("time / a file's", result.ratio("fullbore", "a file", "wall"), "<=", 1.05)
    own_costs(result)
    return result


READ_BLOB = """
import sqlite3, sys
with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as database:
    with database.blobopen("film", "data", 1, readonly=True) as blob:
        while blob.read(1 << 20):
            pass
"""


def blob_database(size):
    """One row with a BLOB of `size` incompressible bytes."""
    path = WORK / "data" / f"blob-{size}.db"
    if not path.exists():
        part, r = path.with_suffix(".part"), random.Random(size)
        part.unlink(missing_ok=True)
        with sqlite3.connect(part) as database:
            database.execute("PRAGMA page_size = 65536")
            database.execute("CREATE TABLE film(id INTEGER PRIMARY KEY, version INTEGER, data BLOB)")
            database.execute("INSERT INTO film VALUES(1, 1, zeroblob(?))", (size,))
            with database.blobopen("film", "data", 1) as blob:
                for at in range(0, size, 8 * MiB):
                    blob.write(r.randbytes(min(8 * MiB, size - at)))
        part.rename(path)
    with open(path, "rb", buffering=0) as f:
        while f.read(8 * MiB):
            pass
    return path


def databases(o):
    """one BLOB of 900 MB from SQLite to a PUT, discarded by the server: against reading it in pieces of 1 MiB"""
    data = DataSet("blob", [300_000_000 if o.quick else 900_000_000])
    path, result = blob_database(data.bytes), Result(f"a BLOB of {data.bytes // 1_000_000} MB")
    with harness.hole() as hole:
        clients = {
            "reading alone": [sys.executable, "-c", READ_BLOB, path],
            "fullbore": [FULLBORE, "push", "--quiet", f"sqlite:{path}?table=film&column=data&version=version&row=1",
                         f"put+{hole.url}/up/film.mov"]}
        rounds(result, {k: bind(k, c, data, hole.url if k == "fullbore" else None) for k, c in clients.items()}, o.rounds)
    result.goal("rate / reading alone", 1 / result.ratio("fullbore", "reading alone", "wall"), ">=", 0.7)
    own_costs(result)
    return result


def gallery(o):
    """a camera roll of 100,000 files: the time and memory of finding them, and the time to the first byte on the wire"""
    count = 10_000 if o.quick else 100_000
    result, peaks, times = Result(f"a camera roll of {count} files"), {}, []
    for size in (count // 10, count):
        roll = WORK / "data" / f"roll-{size}" / "DCIM"
        if not roll.with_suffix(".done").exists():
            for i in range(size):
                path = roll / f"{100 + i // 1000}APPLE" / f"IMG_{i:06}.{'HEIC' if i % 3 else 'MOV'}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"%d" % i)
            roll.with_suffix(".done").touch()
        data = DataSet("roll", [1] * size)
        command = ["bash", "-c", 'exec "$0" "$@" > /dev/null', FULLBORE, "push", "--dry-run", f"{roll}/", "http://127.0.0.1:9/"]
        for number in range(o.rounds + 1):
            run = measure("fullbore", command, data.bytes, data.files)
            peaks[size] = max(peaks.get(size, 0), run["peak"])
            # The first one warms the folders.
            if size == count and number > 0:
                times.append(run["wall"])
    firsts = [growth.until_first_byte(f"{roll}/") for _ in range(o.rounds)]
    result.goal("seconds to find all", statistics.median(times), "<=", 5, " s")
    result.goal("first byte on the wire", statistics.median(firsts) * 1000, "<=", 300, " ms")
    result.goal(f"memory, over that of {count // 10} files", (peaks[count] - peaks[count // 10]) / MiB, "<=", 4, " MiB")
    return result
