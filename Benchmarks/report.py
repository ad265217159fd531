"""Writes the report: Markdown with a picture for each case."""
import os, platform, re, statistics, subprocess
import plots
from harness import FULLBORE, HERE, KiB, MiB


def machine():
    def first(path, key):
        with open(path) as f:
            return next((line.split(":", 1)[-1].split("=")[-1].strip(' "\n') for line in f if line.startswith(key)), "?")

    def said(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0].strip()
        except OSError:
            return "?"

    return "\n".join((
        f"- {first('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, "
        f"{int(first('/proc/meminfo', 'MemTotal').split()[0]) / MiB:.0f} GiB of memory, load {os.getloadavg()[0]:.1f} at the start",
        f"- {first('/etc/os-release', 'PRETTY_NAME')}, Linux {platform.release()}",
        f"- {said('swift', '--version')}; {' '.join(said('curl', '--version').split()[:2])}; "
        f"fullbore: {said(FULLBORE, '--version')}, commit {said('git', '-C', str(HERE), 'rev-parse', '--short', 'HEAD')}"))


def write(results, title, path):
    """Writes the report to `path`, and the pictures into a folder with the same name. Returns the text."""
    folder = path.with_suffix("")
    for result in results:
        if result.runs:
            folder.mkdir(exist_ok=True)
            (folder / picture(result)).write_text(plots.bars(result))
    text = markdown(results, title, folder.name)
    path.write_text(text)
    return text


def picture(result):
    return re.sub(r"\W+", "-", result.title).strip("-").lower() + ".svg"


def markdown(results, title, folder):
    """The goals first, then the medians of every client."""
    out = [f"# Benchmarks, {title}", "", machine(), "", "| what | number | measured | goal | |", "|---|---|---|---|---|"]
    for result in results:
        out += [f"| {t} | {what} | {value} | {goal} | {'met' if met else '**missed**'} |" for t, what, value, goal, met in result.goals]
    columns = [
        ("seconds", lambda r: f"{r['wall']:.2f}"), ("MB/s", lambda r: f"{r['rate'] / 1e6:.0f}"),
        ("CPU s/GB", lambda r: f"{r['cpu_per_gb']:.3f}"), ("µs/file", lambda r: f"{r['cpu'] / r['files'] * 1e6:.0f}"),
        ("peak MiB", lambda r: f"{r['peak'] / MiB:.1f}"), ("temporary bytes", lambda r: f"{r['temporary']:.0f}"),
        ("journal bytes/file", lambda r: f"{r['journal'] / r['files']:.0f}"),
        ("requests/file", lambda r: f"{r['requests_per_file']:.2f}"), ("connections", lambda r: f"{r['connections']:.0f}"),
        ("% of ideal", lambda r: f"{r['ideal']:.1f}"), ("server CPU s/GB", lambda r: f"{r['server_cpu_per_gb']:.3f}")]
    for result in results:
        if not result.runs:
            continue
        out += ["", f"## {result.title}", "", f"Medians of {max(map(len, result.runs.values()))} interleaved rounds.", "", f"![{result.title}]({folder}/{picture(result)})", ""]
        out += [f"| client | {' | '.join(name for name, _ in columns)} |", "|---" * (len(columns) + 1) + "|"]
        for client, runs in result.runs.items():
            middle = {k: statistics.median(r[k] for r in runs) for k, v in runs[0].items() if not isinstance(v, str)}
            cells = [cell(middle) if can(cell, middle) else "" for _, cell in columns]
            out.append(f"| {client} | {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def can(cell, run):
    try:
        return bool(cell(run))
    except KeyError:
        return False
