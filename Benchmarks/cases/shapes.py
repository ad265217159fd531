"""No flag set, over links of many shapes: what the link has is to be used, by few connections."""
import contextlib
import harness
from harness import FULLBORE, KiB, MiB, WORK, DataSet
from result import Result, against_link, bind, rounds

SHAPES = {"20x100": (20, 100), "200x50": (200, 50), "1000x20": (1000, 20), "5000x1": (5000, 1), "loopback": (0, 0)}
PROTOCOLS = {"put": "put+{}/up/", "tus": "tus+{}/files/", "ietf": "resumable+{}/files/", "s3": "s3://bucket/up/"}


def shapes(o):
    """files over links of many shapes, by every protocol, with no flag set: share of the ideal, and of `limit sendfile` with
    64 connections; --shape MBITxRTT, --protocol and --work choose among them"""
    chosen = o.shapes or (["200x50", "1000x20"] if o.quick else list(SHAPES))
    protocols = o.protocols or (["put", "s3"] if o.quick else list(PROTOCOLS))
    results = []
    for shape in chosen:
        mbit, rtt_ms = SHAPES[shape]
        crowd = 20_000 if (mbit >= 1000 or not mbit) and not o.quick else 2000
        works = {"large": ("large", 2 * MiB, 100 if o.quick else 300), "small": ("small", 50 * KiB, crowd)}
        for work in o.works or works:
            kind, size, count = works[work]
            data = DataSet({("large", 300): "photos", ("small", 2000): "small"}.get((kind, count), f"{kind}-{count}"), [size] * count)
            results.append(shape_case(o, data.make(), shape, mbit, rtt_ms, work, protocols))
    return results


def shape_case(o, data, shape, mbit, rtt_ms, work, protocols):
    data.warm()
    result = Result(f"{data.files:,} x {data.sizes[0] // KiB} KiB, {f'{mbit} Mbit/s, {rtt_ms} ms' if mbit else 'loopback'}")
    with contextlib.ExitStack() as stack:
        hole = stack.enter_context(harness.hole())
        url = stack.enter_context(harness.slowlink(hole.url, rtt_ms, mbit)).url if mbit else hole.url
        clients = {"sendfile x64 (limit)": [WORK / "bin" / "limit", "sendfile", url.split(":")[-1], 64, data.folder]}
        for protocol in protocols:
            extra = ["--endpoint", url] if protocol == "s3" else []
            clients[protocol] = [FULLBORE, "push", "--quiet", *extra, f"{data.folder}/", PROTOCOLS[protocol].format(url)]
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    if mbit:
        against_link(result, data.bytes, mbit, rtt_ms)
    for protocol in protocols:
        if mbit and work == "large":
            result.goal(f"{protocol}: share of the ideal time", result.median(protocol, "ideal"), ">=", 98, " %")
        elif 0 < mbit < 5000:
            share = 100 * result.ratio(protocol, "sendfile x64 (limit)", "rate")
            result.goal(f"{protocol}: rate / limit's", share, ">=", 97, " %")
        result.goal(f"{protocol}: connections", max(r["connections"] for r in result.runs[protocol]), "<=", 64)
        result.goal(f"{protocol}: peak memory", max(r["peak"] for r in result.runs[protocol]) / MiB, "<=", 32, " MiB")
    return result
