#!/usr/bin/env python3
"""Three receivers that share their uploads in PostgreSQL and store in one bucket, behind haproxy, which sends each request to the next
of them. `scripts/fleet` runs them for a trial, and fleet.py tests them.

    receivers.py [PORT]     runs until Ctrl-C, and leaves nothing
"""
import contextlib, http.client, os, shutil, signal, subprocess, sys, urllib.parse
import xml.etree.ElementTree as tree

from support import *

PASSWORD = "secret word"
KEY = "AWS4-HMAC-SHA256 Credential=AKIATESTING/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
TOKEN = "robustness-test-token"


class Database:
    """A private PostgreSQL server."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url = f"postgres://fullbore:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{self.port}/fullbore"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [ROOT / "scripts/postgres", self.folder, str(self.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failure("PostgreSQL does not start")

    def stop(self):
        """Ends the server as a kill does: it recovers when it is started again."""
        self.process.stdin.close()
        self.process.wait()

    def ask(self, statement):
        environment = dict(os.environ, PGPASSWORD=PASSWORD)
        done = subprocess.run(
            ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "fullbore", "-d", "fullbore", "-tAc", statement],
            env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Failure(done.stderr)
        return done.stdout.strip()


class Bucket:
    def __init__(self, server):
        self.server = server

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": KEY})
            response = connection.getresponse()
            return response.status, response.read()

    def names(self):
        text = self.ask("GET", "/media?list-type=2&max-keys=1000")[1]
        return sorted(e.text for e in tree.fromstring(text).iter() if e.tag.endswith("}Key"))

    def uploads(self):
        text = self.ask("GET", "/media?uploads")[1]
        return sorted(e.text for e in tree.fromstring(text).iter() if e.tag.endswith("}Key"))


def haproxy(folder, nodes, port):
    addresses = {f"NODE{number}": f"127.0.0.1:{node.port}" for number, node in enumerate(nodes, 1)}
    return Process(
        [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", ROOT / "Packaging/haproxy.cfg"], port, folder / "haproxy.log",
        environment=addresses | {"LISTEN": f"127.0.0.1:{port}"})


def missing():
    """What is not installed, as text; empty: nothing."""
    programs = [name for name in ("haproxy", "psql") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
    if not (ROOT / ".venv/bin/moto_server").exists():
        programs.append("moto")
    return ", ".join(programs) and f"{', '.join(programs)} is not installed: scripts/bootstrap test"


class Fleet:
    def __init__(self, folder, stack, *options, port=None):
        """`options`: of the servers. `port`: of the balancer; None: any."""
        self.folder, self.kills = folder, 0
        self.database = Database(folder / "postgres")
        stack.callback(self.database.stop)
        at = free_port()
        self.bucket = Bucket(stack.enter_context(Process([ROOT / "scripts/moto", at], at, folder / "moto.log")))
        self.bucket.ask("PUT", "/media")
        self.token = folder / "token"
        self.token.write_text(TOKEN)
        self.token.chmod(0o600)
        self.nodes = []
        for number in range(3):
            own = free_port()
            # The servers spell the endpoint in two ways.
            host = "localhost" if number == 1 else "127.0.0.1"
            self.nodes.append(stack.enter_context(Process(
                [FULLBORE, "serve", "--to", "s3://media/in/", "--endpoint", f"http://{host}:{self.bucket.server.port}",
                 "--state", self.database.url, "--listen", f"127.0.0.1:{own}", "--token-file", self.token, *options],
                own, folder / f"node{number}.log", environment=S3_KEYS)))
        self.proxy = stack.enter_context(haproxy(folder, self.nodes, port or free_port()))
        self.url = f"http://127.0.0.1:{self.proxy.port}/"

    def leftovers(self):
        """What is left although nothing is under way."""
        left = []
        if hidden := [name for name in self.bucket.names() if "/.fullbore/" in name and not name.endswith("/fleet")]:
            left.append(f"tails {hidden}")
        if uploads := self.bucket.uploads():
            left.append(f"multipart uploads {uploads}")
        for what, statement in (
                ("uploads", "SELECT count(*) FROM fullbore.uploads"), ("notes", "SELECT count(*) FROM fullbore.notes"),
                ("intents", "SELECT count(*) FROM fullbore.intents")):
            if (count := self.database.ask(statement)) != "0":
                left.append(f"{count} {what}")
        return ", ".join(left)


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else None
    if reason := missing():
        raise SystemExit(f"fleet: {reason}")
    # A shell lets the commands that it starts in the background ignore SIGINT, and Python leaves that so.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with scratch() as folder, contextlib.ExitStack() as stack:
            fleet = Fleet(folder, stack, port=port)
            print(f"{fleet.url} is the balancer of three receivers, with a bucket and a database that are deleted at the end (Ctrl-C)")
            print(f"{FULLBORE} push FOLDER/ {fleet.url} --token-file {fleet.token}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        # Everything has ended.
        return
    except Failure as failure:
        raise SystemExit(f"fleet: {failure}") from None


if __name__ == "__main__":
    main()
