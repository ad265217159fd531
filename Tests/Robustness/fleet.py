#!/usr/bin/env python3
"""Three receivers that share their uploads in PostgreSQL and store in one bucket, behind haproxy, which sends each request to the next
of them. While files arrive, receivers are killed, stopped for longer than their lease, and go on; and the database is killed. Every
push must succeed, every object must have the bytes of its file, and nothing may be left in the bucket and in the database.

    fleet.py short          a few seeds, 60 s
    fleet.py long           200 seeds
    fleet.py N [SEED]       N seeds
"""
import base64, contextlib, http.client, os, pathlib, random, shutil, signal, subprocess, sys, threading, time, urllib.parse
import xml.etree.ElementTree as tree

from support import *

PASSWORD = "secret word"
LEASE = 3
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
            stderr=subprocess.DEVNULL, text=True)
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


def haproxy(folder, nodes):
    port = free_port()
    servers = "\n".join(f"  server node{number} 127.0.0.1:{node.port}" for number, node in enumerate(nodes))
    (folder / "haproxy.cfg").write_text(f"""
global
  maxconn 500
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 10s
  retries 3
  option redispatch 1
  option http-no-delay
  retry-on conn-failure
frontend all
  bind 127.0.0.1:{port}
  default_backend nodes
backend nodes
  balance roundrobin
{servers}
""")
    return Process([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", folder / "haproxy.cfg"], port, folder / "haproxy.log")


class Fleet:
    def __init__(self, folder, stack):
        self.folder, self.kills = folder, 0
        self.database = Database(folder / "postgres")
        stack.callback(self.database.stop)
        port = free_port()
        self.bucket = Bucket(stack.enter_context(
            Process([ROOT / ".venv/bin/moto_server", "-H", "127.0.0.1", "-p", port], port, folder / "moto.log")))
        self.bucket.ask("PUT", "/media")
        token = folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self.nodes = []
        for number in range(3):
            port = free_port()
            self.nodes.append(stack.enter_context(Process(
                [FULLBORE, "serve", "--to", "s3://media/in/", "--endpoint", f"http://127.0.0.1:{self.bucket.server.port}",
                 "--state", self.database.url, "--listen", f"127.0.0.1:{port}", "--token-file", token, "--expire", "20s",
                 "--allow-delete"],
                port, folder / f"node{number}.log", environment=S3_KEYS)))
        self.proxy = stack.enter_context(haproxy(folder, self.nodes))
        self.url = f"http://127.0.0.1:{self.proxy.port}/"

    def leftovers(self):
        """What is left although nothing is under way."""
        left = []
        if hidden := [name for name in self.bucket.names() if "/.fullbore/" in name]:
            left.append(f"tails {hidden}")
        # A node that is killed between the beginning of a multipart upload and the note of it leaves that (docs/fleet.md).
        if len(uploads := self.bucket.uploads()) > self.kills:
            left.append(f"multipart uploads {uploads}")
        for what, statement in (
                ("uploads", "SELECT count(*) FROM fullbore.uploads"), ("notes", "SELECT count(*) FROM fullbore.notes")):
            if (count := self.database.ask(statement)) != "0":
                left.append(f"{count} {what}")
        return ", ".join(left)


class Tus:
    """A client of tus that sends each request to another node. It does not know what a request without an answer has done."""

    def __init__(self, nodes, generator):
        self.nodes, self.generator = nodes, generator
        self.turn = generator.randrange(3)

    def ask(self, method, path, fields={}, body=b"", cut=None):
        """Returns the status and the header; (0, {}): no answer has come. `cut`: the connection is closed after so many bytes."""
        self.turn += 1
        fields = {"Tus-Resumable": "1.0.0", "Authorization": f"Bearer {TOKEN}", "Content-Length": str(len(body))} | fields
        connection = http.client.HTTPConnection("127.0.0.1", self.nodes[self.turn % 3].port, timeout=15)
        with contextlib.closing(connection):
            try:
                connection.putrequest(method, path)
                for name, value in fields.items():
                    connection.putheader(name, value)
                connection.endheaders()
                connection.send(body[:cut])
                if cut is not None:
                    return 0, {}
                response = connection.getresponse()
                self.text = response.read().decode(errors="replace").strip()
                return response.status, response.headers
            except (OSError, http.client.HTTPException):
                return 0, {}

    def send(self, name, data, limit=120):
        """Sends a file in pieces of any size. Returns when a node says that it has the whole file."""
        deadline, path, offset = time.monotonic() + limit, None, None
        while time.monotonic() < deadline:
            if path is None:
                metadata = "filename " + base64.b64encode(name.encode()).decode()
                status, fields = self.ask("POST", "/", {"Upload-Length": str(len(data)), "Upload-Metadata": metadata})
                if status == 201:
                    path, offset = urllib.parse.urljoin("/", fields["Location"]), 0
                    if not data:  # published by its creation, of which only that node knows
                        return
                elif status not in (0, 503):
                    raise Failure(f"{name}: the creation was answered with {status}: {self.text}")
            elif offset is None:
                status, fields = self.ask("HEAD", path)
                if status == 200:
                    offset = int(fields["Upload-Offset"])
                    if offset < self.acknowledged:
                        raise Failure(f"{name}: {self.acknowledged} bytes were acknowledged, and {offset} are there")
                    if offset == len(data):
                        return
                elif status in (404, 410):
                    raise Failure(f"{name}: the upload is gone ({status}): {self.text}")
            else:
                count = min(len(data) - offset, self.generator.choice((1, 70_000, 1 * MiB, 6 * MiB, 9 * MiB)))
                piece = data[offset:offset + count]
                cut = self.generator.randrange(count) if self.generator.random() < 0.2 else None
                status, fields = self.ask(
                    "PATCH", path, {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}, piece, cut)
                if status == 204:
                    self.acknowledged = offset = int(fields["Upload-Offset"])
                    if offset == len(data):
                        return
                else:
                    if status not in (0, 409, 503):
                        raise Failure(f"{name}: PATCH at {offset} was answered with {status}: {self.text}")
                    offset = None
            if offset is None or path is None:
                time.sleep(0.05)
        raise Failure(f"{name} did not arrive in {limit} s")

    acknowledged, text = 0, ""


class Faults(Background):
    """Does something to a node or to the database again and again, until the end of the `with` block."""

    def __init__(self, fleet, generator):
        super().__init__()
        self.fleet, self.generator, self.counts = fleet, generator, {}

    def run(self):
        while not self.ended.wait(self.generator.uniform(0.3, 2)):
            kind = self.generator.choice(("kill", "kill", "stop", "stop", "database"))
            self.counts[kind] = self.counts.get(kind, 0) + 1
            node = self.generator.choice(self.fleet.nodes)
            if kind == "kill":
                node.kill()
                self.fleet.kills += 1
                self.ended.wait(self.generator.uniform(0, LEASE + 1))
                node.start()
            elif kind == "stop":
                node.signal(signal.SIGSTOP)
                self.ended.wait(self.generator.uniform(0.1, 2 * LEASE))
                node.signal(signal.SIGCONT)
            else:
                self.fleet.database.stop()
                self.ended.wait(self.generator.uniform(0, 1))
                self.fleet.database.start()


def run(fleet, seed, results):
    generator = random.Random(seed)
    files = {f"{seed}-{number}.bin": generator.randbytes(generator.choice((0, 1, 3000, 200_000, 5 * MiB, 14 * MiB + 1)))
             for number in range(3)}
    pushed = {f"{seed}-push-{number}.bin": generator.randbytes(generator.choice((9, 300_000, 12 * MiB))) for number in range(4)}
    folder = fleet.folder / f"files-{seed}"
    folder.mkdir()
    for name, data in pushed.items():
        (folder / name).write_bytes(data)
    client = Client(fleet.folder / f"home-{seed}")
    dialect = generator.choice(("tus+", "resumable+", "put+"))
    errors = []

    def send(name, data, seed):
        try:
            Tus(fleet.nodes, random.Random(seed)).send(name, data)
        except Failure as failure:
            errors.append(str(failure))

    with Faults(fleet, generator) as faults:
        client.start("push", "--token-file", fleet.folder / "token", "--bwlimit", "8M", f"{folder}/", f"{dialect}{fleet.url}")
        senders = [threading.Thread(target=send, args=(name, data, f"{seed} {name}")) for name, data in files.items()]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        status, output, _ = client.wait(180)
    if status:
        errors.append(f"push by {dialect} ended with {status}: {output[-1500:]}")
    for name, data in (files | pushed).items():
        status, body = fleet.bucket.ask("GET", f"/media/in/{name}")
        if status != 200 or body != data:
            errors.append(f"{name} has {len(body) if status == 200 else status} instead of {len(data)} bytes, or others")
    results.add("failed" if errors else "passed", f"seed {seed}, {dialect}", "; ".join(errors) or str(faults.counts))


def takeover(fleet, results):
    """How long a client waits for the upload of a node that was killed."""
    node, other = fleet.nodes[0], fleet.nodes[1]
    client = Tus([node] * 3, random.Random(1))
    status, fields = client.ask("POST", "/", {"Upload-Length": "10", "Upload-Metadata": "filename " + base64.b64encode(b"takeover").decode()})
    path = urllib.parse.urljoin("/", fields["Location"])
    head = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    client.ask("PATCH", path, head, b"12345")
    begin = time.monotonic()
    client.nodes = [other] * 3
    status, fields = client.ask("HEAD", path)
    living = time.monotonic() - begin
    client.nodes = [node] * 3
    client.ask("HEAD", path)
    node.kill()
    client.nodes = [other] * 3
    begin = time.monotonic()
    status, fields = client.ask("HEAD", path)
    dead = time.monotonic() - begin
    node.start()
    isRight = status == 200 and fields["Upload-Offset"] == "5" and dead < 5 and living < 1
    text = f"{living * 1000:.0f} ms from a living node, {dead:.1f} s from a dead one"
    results.add("passed" if isRight else "failed", "takeover", f"{text} (status {status})")
    client.ask("DELETE", path)


def main():
    arguments = sys.argv[1:] or ["short"]
    count = {"short": 2, "long": 200}.get(arguments[0]) or int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else 1
    results = Results("fleet")
    missing = [name for name in ("haproxy", "psql") if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing or not (ROOT / ".venv/bin/moto_server").exists():
        results.add("skipped", "all", f"{', '.join(missing) or 'moto'} is not installed: scripts/bootstrap test")
        results.finish()
    with scratch() as folder, contextlib.ExitStack() as stack:
        fleet = Fleet(folder, stack)
        takeover(fleet, results)
        for seed in range(first, first + count):
            run(fleet, seed, results)
        # What is unfinished or finished expires after 20 s, and is looked for each 5 s.
        deadline = time.monotonic() + 40
        while (left := fleet.leftovers()) and time.monotonic() < deadline:
            time.sleep(1)
        orphans = len(fleet.bucket.uploads())
        results.add("failed" if left else "passed", "leftovers", left or f"{orphans} multipart uploads after {fleet.kills} kills")
        for number, node in enumerate(fleet.nodes):
            if crash := node.has_crashed():
                results.add("failed", f"node {number}", f"ended by signal {crash}")
            if PASSWORD in (log := pathlib.Path(node.log).read_text()) or urllib.parse.quote(PASSWORD) in log:
                results.add("failed", f"node {number}", "has printed the password")
    results.finish()


if __name__ == "__main__":
    main()
