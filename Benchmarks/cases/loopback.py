"""Files to a server of this machine that discards them: what a push costs."""
import harness
from harness import FULLBORE, GiB, KiB, MiB, WORK, DataSet
from result import Result, bind, own_costs, rounds
from rivals import curl_parallel, rclone


def large(o):
    """one large file by PUT, discarded by the server: client CPU and throughput against `curl -T`"""
    (data, path), result = harness.large_file(o), Result(f"PUT of one {o.large >> 30} GiB file")
    with harness.hole() as hole:
        url = hole.url
        clients = {
            "curl -T": ["curl", "-sSf", "-H", "Expect:", "-o", "/dev/null", "-T", path, f"{url}/up/{path.name}"],
            "fullbore": [FULLBORE, "push", "--quiet", path, f"put+{url}/up/"],
            "sendfile (limit)": [WORK / "bin" / "limit", "sendfile", url.split(":")[-1], 1, path]}
        rounds(result, {k: bind(k, c, data, url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / curl's", result.ratio("fullbore", "curl -T", "cpu_per_gb"), "<=", 0.35)
    result.goal("throughput / curl's", result.ratio("fullbore", "curl -T", "rate"), ">=", 1.5)
    own_costs(result)
    return result


def tus_large(o):
    """one large file by tus, discarded by the server: client CPU against our own PUT"""
    (data, path), result = harness.large_file(o), Result(f"tus of one {o.large >> 30} GiB file")
    with harness.hole() as hole:
        clients = {
            "PUT": [FULLBORE, "push", "--quiet", path, f"put+{hole.url}/up/"],
            "fullbore": [FULLBORE, "push", "--quiet", path, f"tus+{hole.url}/files/"]}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    result.goal("CPU per GB / PUT's", result.ratio("fullbore", "PUT", "cpu_per_gb"), "<=", 1.1)
    own_costs(result)
    return result


def forms(o):
    """one large file in a form, discarded by the server: client CPU against our own PUT and `curl -F`"""
    (data, path), result = harness.large_file(o), Result(f"form with one {o.large >> 30} GiB file")
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


def many(o, title, data, throughput=1, cpu=None):
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
    quick, cheap = (min((c for c in clients if c != "fullbore"), key=lambda c: result.median(c, key)) for key in ("wall", "cpu"))
    result.goal(f"throughput / {quick}'s", result.ratio("fullbore", quick, "rate"), ">=", throughput)
    if cpu:
        result.goal(f"CPU / {cheap}'s", result.ratio("fullbore", cheap, "cpu"), "<=", cpu)
    own_costs(result)
    return result


def photos(o):
    """300 photographs of 2 MiB by PUT, against `curl --parallel --parallel-max 8`"""
    return many(o, "PUT of 300 x 2 MiB", DataSet("photos", [2 * MiB] * 300), throughput=1.5, cpu=0.5)


def film_roll(o):
    """2,000 photographs of 2 MiB by PUT, against `curl --parallel --parallel-max 8`"""
    count = 500 if o.quick else 2000
    return many(o, f"PUT of {count:,} x 2 MiB", DataSet(f"photos-{count}", [2 * MiB] * count), throughput=1.5, cpu=0.5)


def small(o):
    """2,000 files of 50 KiB by PUT, against `curl --parallel --parallel-max 8`"""
    return many(o, "PUT of 2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000))


def crowd(o):
    """20,000 files of 50 KiB by PUT, against the same: CPU a file, memory, journal"""
    result = many(o, f"PUT of {o.crowd:,} x 50 KiB", DataSet(f"crowd-{o.crowd}", [50 * KiB] * o.crowd))
    result.goal("CPU a file", result.median("fullbore", "cpu") / o.crowd * 1e6, "<=", 45, " µs")
    return result


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
