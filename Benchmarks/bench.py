#!/usr/bin/env python3
"""Fullbore against its rivals, in interleaved rounds; each goal is judged by the median of the rounds' ratios.

usage: bench.py [quick | all | CASE...] [--rounds N] [--with rclone] [--list]

quick   every case, 1 GiB and fewer files, two rounds: to see that nothing broke
all     the real sizes, five rounds (the default); writes results/DATE.md
CASE    one by name, see --list

FULLBORE names the binary. FULLBORE_BENCH_DIR is where data and logs go (default: Benchmarks/work); the server
cases receive into /dev/shm. Compare ratios, not absolute times: neighbours on the machine change those.
"""
import argparse, datetime, http.client, json, random, shutil, socket, sqlite3, statistics, subprocess, sys
import threading, time
import growth, harness, report, shapes
from harness import FULLBORE, GiB, HERE, KiB, MiB, SHM, WORK, DataSet, measure
from result import Result, bind, rounds


def curl_config(data, url):
    """A file that makes curl upload all of a data set over kept connections."""
    config = WORK / "tmp" / f"curl-{data.name}.cfg"
    config.write_text("".join(
        f'url="{url}/up/{path.relative_to(data.folder)}"\nupload-file="{path}"\noutput=/dev/null\n' for path in data.paths()))
    return config


def curl_parallel(data, url, at_once):
    return ["curl", "-sSf", "--no-progress-meter", "-H", "Expect:", "--parallel", "--parallel-max", at_once, "-K", curl_config(data, url)]


def rclone(data, url):
    return ["rclone", "copy", data.folder, ":webdav:up", "--webdav-url", url, "--webdav-vendor", "other",
            "--transfers", 8, "--no-check-dest", "--retries", 1]


def own_costs(result):
    """What holds for every push: no temporary file, little memory, a small journal."""
    ours = result.runs["fullbore"]
    result.goal("peak memory", max(run["peak"] for run in ours) / MiB, "<=", 40, " MiB")
    result.goal("temporary files", max(run["temporary"] for run in ours), "<=", 0, " bytes")
    if ours[0]["files"] > 1:
        per_file = max(run["journal"] / run["files"] for run in ours)
        result.goal("journal growth a file", per_file / KiB, "<=", 2, " KiB")


def large(o):
    """one large file by PUT, discarded by the server: client CPU and throughput against `curl -T`"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"PUT of one {o.large >> 30} GiB file")
    with harness.hole() as hole:
        url = hole.url
        clients = {
            "curl -T": ["curl", "-sSf", "-H", "Expect:", "-o", "/dev/null", "-T", path, f"{url}/up/{path.name}"],
            "fullbore": [FULLBORE, "push", "--quiet", path, f"put+{url}/up/"],
            "sendfile (limit)": [WORK / "bin" / "limit", "sendfile", url.split(":")[-1], 1, path]}
        rounds(result, {k: bind(k, c, data, url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / curl's", result.ratio("fullbore", "curl -T", "cpu_per_gb"), "<=", 0.75)
    result.goal("throughput / curl's", result.ratio("fullbore", "curl -T", "rate"), ">=", 1)
    own_costs(result)
    return result


def forms(o):
    """one large file in a form, discarded by the server: client CPU against our own PUT and `curl -F`"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"form with one {o.large >> 30} GiB file")
    with harness.hole() as hole:
        url = hole.url
        clients = {
            "curl -F": ["curl", "-sSf", "-H", "Expect:", "-o", "/dev/null", "-F", f"file=@{path}", f"{url}/up/"],
            "fullbore put+": [FULLBORE, "push", "--quiet", path, f"put+{url}/up/"],
            "fullbore": [FULLBORE, "push", "--quiet", path, f"form+{url}/up/"]}
        rounds(result, {k: bind(k, c, data, url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / our PUT's", result.ratio("fullbore", "fullbore put+", "cpu_per_gb"), "<=", 1.1)
    result.goal("CPU per GB / curl -F's", result.ratio("fullbore", "curl -F", "cpu_per_gb"), "<=", 1)
    own_costs(result)
    return result


def urls(o):
    """one large file from a URL to a PUT, discarded by the server: against `curl | curl -T -`"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"{o.large >> 30} GiB from one server to another")
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


def many(o, title, data):
    data.make().warm()
    result = Result(title)
    with harness.hole() as hole:
        url = hole.url
        clients = {
            "curl x8": curl_parallel(data, url, 8),
            "fullbore": [FULLBORE, "push", "--quiet", f"{data.folder}/", f"put+{url}/up/"]}
        if o.rclone:
            clients["rclone x8"] = rclone(data, url)
        rounds(result, {k: bind(k, c, data, url) for k, c in clients.items()}, o.rounds)
    result.goal("time / curl x8's", result.ratio("fullbore", "curl x8", "wall"), "<=", 1)
    own_costs(result)
    return result


def photos(o):
    """300 photographs of 2 MiB by PUT, against `curl --parallel --parallel-max 8`"""
    return many(o, "PUT of 300 x 2 MiB", DataSet("photos", [2 * MiB] * 300))


def small(o):
    """2,000 files of 50 KiB by PUT, against `curl --parallel --parallel-max 8`"""
    return many(o, "PUT of 2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000))


def tls(o, title, data, at_once):
    """Our PUT over TLS against curl's, the certificate checked by both."""
    data.make().warm()
    result = Result(title)
    with harness.hole(harness.certificate()) as hole:
        trust = ["--cacert", hole.certificate]
        curl = curl_parallel(data, hole.url, at_once)
        clients = {
            f"curl x{at_once}": [curl[0], *trust, *curl[1:]],
            "fullbore": [FULLBORE, "push", "--quiet", *trust, f"{data.folder}/", f"put+{hole.url}/up/"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / curl's", result.ratio("fullbore", f"curl x{at_once}", "cpu_per_gb"), "<=", 0.75)
    result.goal("throughput / curl's", result.ratio("fullbore", f"curl x{at_once}", "rate"), ">=", 1)
    own_costs(result)
    return result


def tls_large(o):
    """one file of 1 GiB by PUT over TLS, against curl"""
    return tls(o, "PUT of 1 GiB over TLS", DataSet("large-1", [GiB]), 1)


def tls_photos(o):
    """300 photographs of 2 MiB by PUT over TLS, against `curl --parallel --parallel-max 8`"""
    return tls(o, "PUT of 300 x 2 MiB over TLS", DataSet("photos", [2 * MiB] * 300), 8)


def crowd(o):
    """20,000 small files: memory and journal"""
    return many(o, f"PUT of {o.crowd:,} x 50 KiB", DataSet(f"crowd-{o.crowd}", [50 * KiB] * o.crowd))


def slow(o, title, data, share):
    rtt_ms, mbit = 50, 200
    data.make().warm()
    ideal = data.bytes * 8 / (mbit * 1e6) + rtt_ms / 1e3
    result = Result(f"{title}, {rtt_ms} ms round trip, {mbit} Mbit/s")
    with harness.hole() as hole, harness.slowlink(hole.url, rtt_ms, mbit) as link:
        clients = {
            "curl x8": curl_parallel(data, link.url, 8),
            "curl x32": curl_parallel(data, link.url, 32),
            "fullbore": [FULLBORE, "push", "--quiet", f"{data.folder}/", f"tus+{link.url}/files/"],
            "fullbore (IETF)": [FULLBORE, "push", "--quiet", f"{data.folder}/", f"resumable+{link.url}/files/"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    for runs in result.runs.values():
        for run in runs:
            run["ideal"] = 100 * ideal / run["wall"]
    for client, dialect in (("fullbore", "tus"), ("fullbore (IETF)", "IETF")):
        result.goal(f"{dialect}: share of the ideal time", result.median(client, "ideal"), ">=", share, " %")
        result.goal(f"{dialect}: requests a file", result.median(client, "requests_per_file"), "<=", 1)
        result.goal(f"{dialect}: connections", result.median(client, "connections"), "<=", 64)
    own_costs(result)
    return result


def slow_photos(o):
    """300 x 2 MiB by tus and by IETF resumable uploads over a slow link"""
    return slow(o, "300 x 2 MiB", DataSet("photos", [2 * MiB] * 300), 98)


def slow_small(o):
    """2,000 x 50 KiB by tus and by IETF resumable uploads over a slow link"""
    return slow(o, "2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000), 92)


def slow_pipe(o):
    """256 MiB through a pipe to our server over a slow link: held in bounded memory, and never waiting for an answer"""
    rtt_ms, mbit, size = 50, 200, 256 * MiB
    data = DataSet("film", [size]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"a pipe of {size // MiB} MiB, {rtt_ms} ms round trip, {mbit} Mbit/s")
    folder = SHM / "pipe"
    with harness.serve(folder) as ours, harness.slowlink(ours.url, rtt_ms, mbit) as link:
        def push(label, dialect, *options):
            command = [FULLBORE, "push", "--quiet", "--header", f"Host: {ours.url.split('//')[1]}", *options, "-",
                       f"{dialect}{link.url}/film.mov"]
            line = f"cat '{path}' | " + " ".join(f"'{word}'" for word in command)
            try:
                return measure(label, ["bash", "-c", line], data.bytes)
            finally:
                (folder / "film.mov").unlink(missing_ok=True)

        clients = {label: lambda label=label, dialect=dialect: push(label, dialect)
                   for label, dialect in (("fullbore", ""), ("fullbore (tus)", "tus+"))}
        rounds(result, clients, o.rounds)
    ideal = size * 8 / (mbit * 1e6) + rtt_ms / 1e3
    for runs in result.runs.values():
        for run in runs:
            run["ideal"] = 100 * ideal / run["wall"]
    result.goal("share of the ideal time", result.median("fullbore", "ideal"), ">=", 94, " %")
    result.goal("tus, which waits for each answer: share of the ideal time", result.median("fullbore (tus)", "ideal"), ">=", 85, " %")
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


def tus_large(o):
    """one large file by tus, discarded by the server: client CPU against our own PUT"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"tus of one {o.large >> 30} GiB file")
    with harness.hole() as hole:
        clients = {
            "PUT": [FULLBORE, "push", "--quiet", path, f"put+{hole.url}/up/"],
            "fullbore": [FULLBORE, "push", "--quiet", path, f"tus+{hole.url}/files/"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / PUT's", result.ratio("fullbore", "PUT", "cpu_per_gb"), "<=", 1.1)
    own_costs(result)
    return result


def parallel(o):
    """one file by tus over a link that gives each connection a tenth of its rate: parts at once against one connection"""
    rtt_ms, mbit, each, size = 50, 200, 20, 256 * MiB
    data = DataSet("film", [size]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"{size // MiB} MiB by tus, {rtt_ms} ms, {each} of {mbit} Mbit/s a connection")
    folder = SHM / "parallel"
    with harness.serve(folder) as ours, harness.slowlink(ours.url, rtt_ms, mbit, each) as link:
        host = f"Host: {ours.url.split('//')[1]}"

        def push(label, *options):
            try:
                return measure(label, [FULLBORE, "push", "--quiet", "--header", host, *options, path, f"tus+{link.url}/"], data.bytes)
            finally:
                (folder / path.name).unlink(missing_ok=True)

        clients = {"fullbore": lambda: push("fullbore"), "one connection": lambda: push("one connection", "--parts-at-once", 1)}
        rounds(result, clients, min(o.rounds, 1 if o.quick else 3))
    ideal = size * 8 / (mbit * 1e6)
    for runs in result.runs.values():
        for run in runs:
            run["ideal"] = 100 * ideal / run["wall"]
    result.goal("speed / one connection's", result.ratio("fullbore", "one connection", "rate"), ">=", 5)
    own_costs(result)
    return result


def rival_pythons():
    """Where Python packages may be: beside what we run in, and before everything else on PATH."""
    return [sys.executable, *(p for p in (shutil.which("python3"), HERE.parent / ".venv" / "bin" / "python") if p)]


def can_import(python, module):
    try:
        return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def s3_clients(data, url, certificate=None):
    """Ours as users run it, and those rivals that are installed, with the best settings we know."""
    (WORK / "tmp" / "aws.cfg").write_text(
        "[default]\nregion=us-east-1\nrequest_checksum_calculation=when_required\ns3 =\n  addressing_style = path\n"
        "  multipart_chunksize = 16MB\n  multipart_threshold = 16MB\n  payload_signing_enabled = false\n")
    trust, insecure = [], []
    if certificate:
        trust, insecure = ["--cacert", certificate], ["--no-check-certificate"]
    clients = {"fullbore": [FULLBORE, "push", "--quiet", *trust, "--endpoint", url, f"{data.folder}/", "s3://bucket/up/"]}
    if shutil.which("rclone"):
        clients["rclone x8"] = [
            "rclone", "copy", data.folder, ":s3:bucket/up", "--s3-provider", "Other", "--s3-endpoint", url, "--s3-env-auth",
            "--s3-force-path-style", "--s3-no-check-bucket", "--s3-no-head", "--s3-disable-checksum", "--ignore-checksum",
            "--s3-use-multipart-etag=false", "--transfers", 8, "--no-check-dest", "--s3-chunk-size", "16Mi",
            "--s3-upload-concurrency", 4, "--retries", 1, *insecure]
    if shutil.which("s5cmd"):
        clients["s5cmd"] = [
            "s5cmd", "--endpoint-url", url, *(["--no-verify-ssl"] if certificate else []), "--log", "error", "--numworkers",
            64, "cp", f"{data.folder}/", "s3://bucket/up/"]
    python = next((p for p in rival_pythons() if can_import(p, "awscrt")), None)
    if python:
        clients["aws-crt"] = [python, HERE / "crt.py", url, data.folder, 32 if data.files > 1 else 16, 16]
    if shutil.which("aws"):
        clients["aws"] = [
            "aws", "s3", "cp", "--only-show-errors", "--endpoint-url", url,
            *(["--ca-bundle", certificate] if certificate else []), "--recursive", f"{data.folder}/", "s3://bucket/up/"]
    return clients


def s3_case(o, title, data, wanted):
    data.make().warm()
    result = Result(title)
    with harness.hole(harness.certificate()) as hole:
        clients = s3_clients(data, hole.url, hole.certificate)
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    rivals = [name for name in clients if name != "fullbore"]
    if rivals:
        best = min(rivals, key=lambda name: result.median(name, "cpu_per_gb"))
        result.goal(f"CPU per GB / {best}'s, the best", result.ratio("fullbore", best, "cpu_per_gb"), "<=", wanted)
        quick = min(rivals, key=lambda name: result.median(name, "wall"))
        result.goal(f"throughput / {quick}'s, the best", result.ratio("fullbore", quick, "rate"), ">=", 1)
    result.goal("peak memory", max(run["peak"] for run in result.runs["fullbore"]) / MiB, "<=", 64, " MiB")
    result.goal("temporary files", max(run["temporary"] for run in result.runs["fullbore"]), "<=", 0, " bytes")
    return result


def s3_large(o):
    """one file of 1 GiB to S3 over TLS, in parts, against rclone, and s5cmd, aws-crt and aws where they are installed"""
    return s3_case(o, "1 GiB to S3 over TLS", DataSet("large-1", [GiB]), 0.5)


def s3_photos(o):
    """300 x 2 MiB to S3 over TLS"""
    return s3_case(o, "300 x 2 MiB to S3 over TLS", DataSet("photos", [2 * MiB] * 300), 0.5)


def s3_small(o):
    """2,000 x 50 KiB to S3 over TLS"""
    return s3_case(o, "2,000 x 50 KiB to S3 over TLS", DataSet("small", [50 * KiB] * 2000), 0.5)


def s3_slow(o, title, data, share):
    rtt_ms, mbit = 50, 200
    data.make().warm()
    ideal = data.bytes * 8 / (mbit * 1e6) + rtt_ms / 1e3
    result = Result(f"{title} to S3, {rtt_ms} ms round trip, {mbit} Mbit/s")
    with harness.hole() as hole, harness.slowlink(hole.url, rtt_ms, mbit) as link:
        clients = {k: c for k, c in s3_clients(data, link.url).items() if k in ("fullbore", "rclone x8")}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, min(o.rounds, 3))
    for runs in result.runs.values():
        for run in runs:
            run["ideal"] = 100 * ideal / run["wall"]
    result.goal("share of the ideal time", result.median("fullbore", "ideal"), ">=", share, " %")
    return result


def s3_slow_photos(o):
    """300 x 2 MiB to S3 over a slow link"""
    return s3_slow(o, "300 x 2 MiB", DataSet("photos", [2 * MiB] * 300), 98)


def s3_slow_small(o):
    """2,000 x 50 KiB to S3 over a slow link"""
    return s3_slow(o, "2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000), 90)


def server(o):
    """our server against nginx dav: `curl -T` of a large file into a folder on tmpfs"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"curl -T of {o.large >> 30} GiB into a tmpfs folder")
    with harness.nginx(SHM / "nginx") as nginx, harness.serve(SHM / "fullbore") as ours:
        folders = {"nginx dav": (nginx, SHM / "nginx"), "fullbore serve": (ours, SHM / "fullbore")}

        def put(label):
            there, folder = folders[label]
            try:
                return measure(
                    label, ["curl", "-sSf", "-H", "Expect:", "-o", "/dev/null", "-T", path, f"{there.url}/{path.name}"],
                    data.bytes, server=there)
            finally:
                (folder / path.name).unlink(missing_ok=True)

        rounds(result, {label: lambda label=label: put(label) for label in folders}, o.rounds)
        result.goal("server's peak memory", ours.peak() / MiB, "<=", 128, " MiB")
    result.goal("throughput / nginx's", result.ratio("fullbore serve", "nginx dav", "rate"), ">=", 1)
    return result


def connections(o):
    """memory of our server with 1,000 uploads held open in mid-body"""
    count, body, sent = 1000, MiB, 300 * KiB
    result = Result(f"{count:,} uploads held open")
    with harness.serve(SHM / "held") as ours, harness.many_files():  # ours has the limits a shell gives, and raises them
        host, port = ours.url.split("//")[1].split(":")
        held = []
        for i in range(count):
            s = socket.create_connection((host, int(port)), 10)
            s.sendall(f"PUT /held/{i}.bin HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {body}\r\n\r\n".encode())
            s.sendall(bytes(sent))
            held.append(s)
        time.sleep(1)
        peak = ours.peak()
        for s in held:
            s.sendall(bytes(body - sent))
        answers = [s.recv(4096).split(b" ")[1] for s in held]
        for s in held:
            s.close()
    result.goal("server's peak memory", peak / MiB, "<=", 128, " MiB")
    result.goal("of them finished well afterwards", sum(a in (b"200", b"201", b"204") for a in answers), ">=", count)
    return result


def crowded(o):
    """memory of our server with 200 uploads under way and 1,000 connections that wait for their next request"""
    uploads, idle, body, sent = 200, 1000, 8 * MiB, MiB
    result = Result(f"{uploads} uploads under way, {idle:,} idle connections")
    with harness.serve(SHM / "crowded") as ours, harness.many_files():
        host, port = ours.url.split("//")[1].split(":")

        def connect(request):
            s = socket.create_connection((host, int(port)), 20)
            s.sendall(f"{request}\r\nHost: {host}:{port}\r\n".encode())
            return s

        def status(s):
            return s.recv(4096).split(b" ")[1]

        waiting = [connect("GET /nothing HTTP/1.1") for _ in range(idle)]
        for s in waiting:
            s.sendall(b"\r\n")
        answered = sum(status(s) == b"404" for s in waiting)
        under_way = [connect(f"PUT /crowded/{i}.bin HTTP/1.1\r\nContent-Length: {body}") for i in range(uploads)]
        for s in under_way:
            s.sendall(b"\r\n" + bytes(sent))
        time.sleep(1)
        peak = ours.peak()
        for s in under_way:
            s.sendall(bytes(body - sent))
        finished = sum(status(s) == b"201" for s in under_way)
        for s in waiting:
            s.sendall(f"GET /nothing HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        again = sum(status(s) == b"404" for s in waiting)
        for s in waiting + under_way:
            s.close()
    result.goal("server's peak memory", peak / MiB, "<=", 64, " MiB")
    result.goal("uploads that finished well", finished, ">=", uploads)
    result.goal("idle connections that were answered twice", min(answered, again), ">=", idle)
    return result


def attacked(o):
    """a push to our server while 100 clients send a byte at a time, against the same push without them"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"push of {o.large >> 30} GiB under 100 slow clients")
    with harness.serve(SHM / "attacked") as ours:
        host, port = ours.url.split("//")[1].split(":")

        def push(label, attackers):
            stop, threads = threading.Event(), []

            def drip(number):
                """A head or a body, a byte ten times a second; a connection that is closed is made anew."""
                starts = (b"GET / HTTP/1.1\r\nX: ",
                          f"PUT /drip{number} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 1000000\r\n\r\n".encode())
                while not stop.is_set():
                    try:
                        with socket.create_connection((host, int(port)), 5) as s:
                            s.sendall(starts[number % 2])
                            while not stop.wait(0.1):
                                s.sendall(b"a")
                    except OSError:
                        pass

            for number in range(attackers):
                threads.append(threading.Thread(target=drip, args=(number,), daemon=True))
                threads[-1].start()
            time.sleep(1)
            try:
                return measure(label, [FULLBORE, "push", "--quiet", path, f"put+{ours.url}/"], data.bytes, server=ours)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
                (SHM / "attacked" / path.name).unlink(missing_ok=True)

        rounds(result, {"alone": lambda: push("alone", 0), "under attack": lambda: push("under attack", 100)}, o.rounds)
    result.goal("speed under attack / alone", result.ratio("under attack", "alone", "rate"), ">=", 0.9)
    return result


def unfinished(o):
    """a push of 2,000 small files, and the server's start, beside 10,000 uploads that nobody finishes"""
    count, data = 10_000, DataSet("small", [50 * KiB] * 2000).make()
    data.warm()
    result = Result(f"2,000 x 50 KiB beside {count:,} unfinished uploads")
    folder = SHM / "unfinished"
    with harness.serve(folder) as ours:
        host = ours.url.split("//")[1]
        connection = http.client.HTTPConnection(host, timeout=20)
        for number in range(count):
            connection.request("POST", "/", bytes(3), {
                "Tus-Resumable": "1.0.0", "Upload-Length": "10", "Content-Type": "application/offset+octet-stream"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                raise SystemExit(f"upload {number} was not begun: {answer.status}")
        connection.close()

    def push(label, place):
        began = time.monotonic()
        with harness.serve(place) as ours:
            started, cpu = time.monotonic() - began, -1.0
            while cpu != ours.cpu():  # what it looks through after its start is told by itself
                cpu = ours.cpu()
                time.sleep(0.2)
            run = measure(label, [FULLBORE, "push", "--quiet", data.folder, f"put+{ours.url}/up/"], data.bytes, data.files, server=ours)
            run |= {"started": started, "settled": cpu}
        shutil.rmtree(place / "up", ignore_errors=True)
        return run

    rounds(result, {"alone": lambda: push("alone", SHM / "alone"), "beside": lambda: push("beside", folder)}, o.rounds)
    shutil.rmtree(folder)
    result.goal("speed beside / alone", result.ratio("beside", "alone", "rate"), ">=", 0.95)
    result.goal("server's CPU beside / alone", result.ratio("beside", "alone", "server_cpu_per_gb"), "<=", 1.1)
    result.goal("start of the server", result.median("beside", "started"), "<=", 0.5, " s")
    result.goal("CPU that it takes until it has looked through them", result.median("beside", "settled"), "<=", 1, " s")
    return result


def streams(o):
    """BlobInputStream: reads against pread, waits, events; its program prints the goals"""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    result = Result("BlobInputStream")
    program = harness.release("StreamBenchmark")
    lines = subprocess.run([program, data.paths()[0], str(o.rounds)], stdout=subprocess.PIPE, text=True, check=True).stdout
    for number in map(json.loads, lines.splitlines()):
        unit = f" {number['unit']}" if number["unit"] else ""
        result.goal(number["what"], number["value"], number["relation"], number["goal"], unit)
    return result


def urlsession(o):
    """one large file through URLSession: our streams against Foundation's own stream of the file"""
    size = o.large + o.large // 4
    data = DataSet(f"urlsession-{size >> 30}", [size]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"PUT of {size / GiB:g} GiB through URLSession")
    program = harness.release("URLSessionBenchmark")
    with harness.hole() as hole:
        url = f"{hole.url}/up/{path.name}"
        clients = {"Foundation": "file", "StreamedUpload": "upload", "setBody": "body"}
        rounds(result, {k: bind(k, [program, way, path, url], data, hole.url) for k, way in clients.items()}, o.rounds)
    for ours in ("StreamedUpload", "setBody"):
        result.goal(f"{ours}: CPU per GB / Foundation's", result.ratio(ours, "Foundation", "cpu_per_gb"), "<=", 1)
        result.goal(f"{ours}: peak memory", max(run["peak"] for run in result.runs[ours]) / MiB, "<=", 48, " MiB")
    return result


CASES = {f.__name__.replace("_", "-"): f for f in (
    large, tus_large, forms, urls, databases, gallery, photos, small, crowd, slow_photos, slow_small, slow_pipe, slow_url, parallel,
    tls_large, tls_photos, s3_large, s3_photos, s3_small,
    s3_slow_photos, s3_slow_small, server, connections, crowded, attacked, unfinished, streams, urlsession,
    growth.start, growth.growth, shapes.shapes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="quick | all | CASE")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--with", dest="rivals", action="append", default=[], choices=["rclone"])
    parser.add_argument("--shape", dest="shapes", action="append", choices=list(shapes.SHAPES), metavar="MBITxRTT")
    parser.add_argument("--dialect", dest="dialects", action="append", choices=list(shapes.DIALECTS))
    parser.add_argument("--work", dest="works", action="append", choices=["large", "small"])
    parser.add_argument("--list", action="store_true")
    o = parser.parse_args()
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
        # Some links are so slow that this one would take hours; it is named, with the links that matter.
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
