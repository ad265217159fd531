"""Links with a round trip and a rate: how much of them is used."""
import harness
from harness import FULLBORE, KiB, MiB, SHM, DataSet, measure
from result import Result, against_link, bind, own_costs, rounds
from rivals import curl_parallel


def slow(o, title, data, share):
    rtt_ms, mbit = 50, 200
    data.make().warm()
    result = Result(f"{title}, {rtt_ms} ms round trip, {mbit} Mbit/s")
    with harness.hole() as hole, harness.slowlink(hole.url, rtt_ms, mbit) as link:
        clients = {
            "curl x8": curl_parallel(data, link.url, 8),
            "curl x32": curl_parallel(data, link.url, 32),
            "fullbore": [FULLBORE, "push", "--quiet", f"{data.folder}/", f"tus+{link.url}/files/"],
            "fullbore (IETF)": [FULLBORE, "push", "--quiet", f"{data.folder}/", f"resumable+{link.url}/files/"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    against_link(result, data.bytes, mbit, rtt_ms)
    for client, protocol in (("fullbore", "tus"), ("fullbore (IETF)", "IETF")):
        result.goal(f"{protocol}: share of the ideal time", result.median(client, "ideal"), ">=", share, " %")
        result.goal(f"{protocol}: requests a file", result.median(client, "requests_per_file"), "<=", 1)
        result.goal(f"{protocol}: connections", result.median(client, "connections"), "<=", 64)
    own_costs(result)
    return result


def slow_photos(o):
    """300 x 2 MiB by tus and by IETF resumable uploads over a slow link"""
    return slow(o, "300 x 2 MiB", DataSet("photos", [2 * MiB] * 300), 98)


def slow_small(o):
    """2,000 x 50 KiB by tus and by IETF resumable uploads over a slow link"""
    return slow(o, "2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000), 92)


def slow_tls(o):
    """2,000 x 50 KiB and 300 x 2 MiB by PUT over TLS and a slow link: memory with 64 connections"""
    results = []
    for data, rtt_ms, mbit in ((DataSet("small", [50 * KiB] * 2000), 50, 200), (DataSet("photos", [2 * MiB] * 300), 20, 1000)):
        data.make().warm()
        result = Result(f"{data.files:,} x {data.sizes[0] // KiB} KiB over TLS, {rtt_ms} ms round trip, {mbit} Mbit/s")
        with harness.hole(harness.certificate()) as hole, harness.slowlink(hole.url, rtt_ms, mbit) as link:
            url = link.url.replace("http:", "https:")
            push = [FULLBORE, "push", "--quiet", "--cacert", hole.certificate, f"{data.folder}/", f"put+{url}/up/"]
            rounds(result, {"fullbore": bind("fullbore", push, data, hole.url)}, o.rounds)
        against_link(result, data.bytes, mbit, rtt_ms)
        own_costs(result)
        results.append(result)
    return results


def slow_pipe(o):
    """256 MiB through a pipe to our server over a slow link: held in bounded memory, and never waiting for an answer"""
    rtt_ms, mbit, size = 50, 200, 256 * MiB
    data = DataSet("film", [size]).make()
    data.warm()
    path, result = data.paths()[0], Result(f"a pipe of {size // MiB} MiB, {rtt_ms} ms round trip, {mbit} Mbit/s")
    folder = SHM / "pipe"
    with harness.serve(folder) as ours, harness.slowlink(ours.url, rtt_ms, mbit) as link:
        def push(label, protocol, *options):
            command = [FULLBORE, "push", "--quiet", "--header", f"Host: {ours.url.split('//')[1]}", *options, "-",
                       f"{protocol}{link.url}/film.mov"]
            line = f"cat '{path}' | " + " ".join(f"'{word}'" for word in command)
            try:
                return measure(label, ["bash", "-c", line], data.bytes)
            finally:
                (folder / "film.mov").unlink(missing_ok=True)

        clients = {label: lambda label=label, protocol=protocol: push(label, protocol)
                   for label, protocol in (("fullbore", ""), ("fullbore (tus)", "tus+"))}
        rounds(result, clients, o.rounds)
    against_link(result, size, mbit, rtt_ms)
    result.goal("share of the ideal time", result.median("fullbore", "ideal"), ">=", 94, " %")
    result.goal("tus, which waits for each answer: share of the ideal time", result.median("fullbore (tus)", "ideal"), ">=", 85, " %")
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
    against_link(result, size, mbit)
    result.goal("speed / one connection's", result.ratio("fullbore", "one connection", "rate"), ">=", 5)
    own_costs(result)
    return result
