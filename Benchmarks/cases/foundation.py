"""Streams beside Foundation's own."""
import json, subprocess
import harness
from harness import GiB, MiB, DataSet
from result import Result, bind, rounds


def streams(o):
    """BlobInputStream: reads against pread, waits, events; its program prints the goals"""
    path = harness.large_file(o)[1]
    result = Result("BlobInputStream")
    program = harness.release("StreamBenchmark")
    lines = subprocess.run([program, path, str(o.rounds)], stdout=subprocess.PIPE, text=True, check=True).stdout
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
