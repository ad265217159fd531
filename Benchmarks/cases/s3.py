"""S3, over TLS and over a slow link, against those who speak it."""
import harness
from harness import GiB, KiB, MiB, DataSet
from result import Result, against_link, bind, rounds
from rivals import s3_clients


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
    return s3_case(o, "1 GiB to S3 over TLS", DataSet("large-1", [GiB]), 0.4)


def s3_photos(o):
    """300 x 2 MiB to S3 over TLS"""
    return s3_case(o, "300 x 2 MiB to S3 over TLS", DataSet("photos", [2 * MiB] * 300), 0.4)


def s3_small(o):
    """2,000 x 50 KiB to S3 over TLS"""
    return s3_case(o, "2,000 x 50 KiB to S3 over TLS", DataSet("small", [50 * KiB] * 2000), 0.4)


def s3_slow(o, title, data, share):
    rtt_ms, mbit = 50, 200
    data.make().warm()
    result = Result(f"{title} to S3, {rtt_ms} ms round trip, {mbit} Mbit/s")
    with harness.hole() as hole, harness.slowlink(hole.url, rtt_ms, mbit) as link:
        clients = {k: c for k, c in s3_clients(data, link.url).items() if k in ("fullbore", "rclone x8")}
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, min(o.rounds, 3))
    against_link(result, data.bytes, mbit, rtt_ms)
    result.goal("share of the ideal time", result.median("fullbore", "ideal"), ">=", share, " %")
    return result


def s3_slow_photos(o):
    """300 x 2 MiB to S3 over a slow link"""
    return s3_slow(o, "300 x 2 MiB", DataSet("photos", [2 * MiB] * 300), 98)


def s3_slow_small(o):
    """2,000 x 50 KiB to S3 over a slow link"""
    return s3_slow(o, "2,000 x 50 KiB", DataSet("small", [50 * KiB] * 2000), 90)
