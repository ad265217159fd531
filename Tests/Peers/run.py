"""Runs Fullbore against servers and clients of other projects; scripts/peers starts it."""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

import buckets
import checks
import receivers
import records
import servers
import unpackaged
from fullbore import Fullbore

SERVERS = [
    unpackaged.Nextcloud, unpackaged.Tusd, servers.Wsgidav, servers.Apache, servers.Nginx, servers.NginxPut, servers.Rclone,
    buckets.Moto, buckets.GCSEmulator, receivers.Receiver, receivers.Haproxy, receivers.Caddy,
]


class Tally:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        # Outcome and reason of each check of the server that was run last, by name.
        self.outcomes = {}

    def tell(self, where, what, outcome, text="", seconds=0.0):
        self.counts[outcome] += 1
        self.outcomes[what] = (outcome, text)
        time_taken = f" ({seconds:.1f} s)" if outcome != "skipped" else ""
        print(f"{where}: {what}: {outcome}{time_taken}{': ' + text if text else ''}", flush=True)

    def run(self, where, what, check):
        start = time.monotonic()
        try:
            text = check() or ""
            self.tell(where, what, "passed", text, time.monotonic() - start)
        except (checks.Skipped, servers.Missing) as reason:
            self.tell(where, what, "skipped", str(reason))
        except checks.Failed as reason:
            self.tell(where, what, "failed", str(reason), time.monotonic() - start)
        except Exception:  # a server that cannot be asked fails only this check
            text = traceback.format_exc(limit=-3).replace("\n", " | ")
            self.tell(where, what, "failed", text, time.monotonic() - start)

    @property
    def last_line(self):
        return ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items())


def keep(kind, outcomes, version, options, tally):
    """Records the results of all checks of a program, or compares them with the recorded ones."""
    if options.only or any(outcome == "failed" for outcome, _ in outcomes.values()):
        return
    name = kind.__name__.lower()
    if options.record:
        records.record_server(kind, outcomes, version)
    elif different := records.differing(name, outcomes):
        tally.tell(
            name, "record", "failed",
            f"{', '.join(different)}: Tests/Peers/recorded.json says otherwise; scripts/peers --record {name} takes this over")


def run_server(kind, options, scratch, tally):
    server = None
    tally.outcomes = {}
    try:
        server = kind(scratch)
        server.start()
    except servers.Missing as reason:
        for name, _ in options.checks:
            tally.tell(kind.__name__.lower(), name, "skipped", str(reason))
        return
    except Exception as error:
        tally.tell(kind.__name__.lower(), "start", "failed", repr(error))
        return
    try:
        fullbore = Fullbore(options.fullbore, server.scratch, getattr(server, "environment", {}))
        count = min(options.count, 60) if server.slow and options.quick else options.count
        bench = checks.Bench(server, fullbore, scratch, count, options.large << 20)
        for name, check in options.checks:
            tally.run(server.name, name, lambda: check(bench))
        keep(kind, tally.outcomes, server.version(), options, tally)
        if kind is receivers.Receiver:
            folder = os.path.join(server.scratch, "tus-js")
            os.makedirs(folder)
            server.wipe()
            tally.outcomes = {}
            tally.run("tus-js-client", "sends, is killed, goes on", lambda: receivers.tus_js_client(server, folder))
            if any(outcome == "passed" for outcome, _ in tally.outcomes.values()):
                keep(receivers.TusJS, tally.outcomes, receivers.TusJS.version(), options, tally)
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of servers; all of them when none is given")
    parser.add_argument("--quick", action="store_true", help="smaller, for every day")
    parser.add_argument("--only", help="the checks whose names contain this")
    parser.add_argument("--record", action="store_true", help="keep the results for docs/interoperability.md")
    parser.add_argument("--keep", action="store_true", help="leave the scratch folder")
    options = parser.parse_args()
    options.fullbore = os.path.abspath(os.environ["FULLBORE"])
    options.count, options.large = (90, 48) if options.quick else (300, 256)
    options.checks = [(name, check) for name, check in checks.ALL if (options.only or "") in name]
    receivers.Receiver.binary = options.fullbore
    known = {kind.__name__.lower(): kind for kind in SERVERS}
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no server is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    scratch = tempfile.mkdtemp(prefix="fullbore-peers-")
    tally = Tally()
    try:
        for name, kind in known.items():
            if not options.names or name in options.names:
                run_server(kind, options, scratch, tally)
    finally:
        if options.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(tally.last_line)
    return 1 if tally.counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
