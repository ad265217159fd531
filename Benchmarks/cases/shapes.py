"""No flag set, over links of many shapes: what the link has is to be used, by few connections."""
import contextlib
import harness
from harness import FULLBORE, KiB, MiB, WORK, DataSet
from result import Result, against_link, bind, rounds

SHAPES = {"20x100": (20, 100), "200x50": (200, 50), "1000x20": (1000, 20), "5000x1": (5000, 1), "loopback": (0, 0)}
DIALECTS = {"put": "put+{}/up/", "tus": "tus+{}/files/", "ietf": "resumable+{}/files/", "s3": "s3://bucket/up/"}


def shapes(o):
    """files over links of many shapes, by every dialect, with no flag set: share of the ideal, and of `limit sendfile` with
    64 connections; --shape MBITxRTT, --dialect and --work choose among them"""
    chosen = o.shapes or (["200x50", "1000x20"] if o.quick else list(SHAPES))
    dialects = o.dialects or (["put", "s3"] if o.quick else list(DIALECTS))
    results = []
    for shape in chosen:
        mbit, rtt_ms = SHAPES[shape]
        crowd = 20_000 if (mbit >= 1000 or not mbit) and not o.quick else 2000
        works = {"large": ("large", 2 * MiB, 100 if o.quick else 300), "small": ("small", 50 * KiB, crowd)}
        for work in o.works or works:
            kind, size, count = works[work]
            data = DataSet({("large", 300): "photos", ("small", 2000): "small"}.get((kind, count), f"{kind}-{count}"), [size] * count)
            results.append(shape_case(o, data.make(), shape, mbit, rtt_ms, work, dialects))
    return results


def shape_case(o, data, shape, mbit, rtt_ms, work, dialects):
    data.warm()
    result = Result(f"{data.files:,} x {data.sizes[0] // KiB} KiB, {f'{mbit} Mbit/s, {rtt_ms} ms' if mbit else 'loopback'}")
    with contextlib.ExitStack() as stack:
        hole = stack.enter_context(harness.hole())
        url = stack.enter_context(harness.slowlink(hole.url, rtt_ms, mbit)).url if mbit else hole.url
        clients = {"sendfile x64 (limit)": [WORK / "bin" / "limit", "sendfile", url.split(":")[-1], 64, data.folder]}
        for dialect in dialects:
            extra = ["--endpoint", url] if dialect == "s3" else []
            clients[dialect] = [FULLBORE, "push", "--quiet", *extra, f"{data.folder}/", DIALECTS[dialect].format(url)]
        rounds(result, {k: bind(k, c, data, hole.url) for k, c in clients.items()}, o.rounds)
    if mbit:
        against_link(result, data.bytes, mbit, rtt_ms)
    for dialect in dialects:
        if mbit and work == "large":
            result.goal(f"{dialect}: share of the ideal time", result.median(dialect, "ideal"), ">=", 98, " %")
        elif 0 < mbit < 5000:
            share = 100 * result.ratio(dialect, "sendfile x64 (limit)", "rate")
            result.goal(f"{dialect}: rate / limit's", share, ">=", 97, " %")
        result.goal(f"{dialect}: connections", max(r["connections"] for r in result.runs[dialect]), "<=", 64)
        result.goal(f"{dialect}: peak memory", max(r["peak"] for r in result.runs[dialect]) / MiB, "<=", 32, " MiB")
    return result
