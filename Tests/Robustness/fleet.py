#!/usr/bin/env python3
"""Three receivers that share their uploads in PostgreSQL and store in one bucket, behind haproxy, which sends each request to the next
of them. While files arrive, receivers are killed, stopped for longer than their lease, and go on; and the database is killed. Every
push must succeed, every object must have the bytes of its file, and nothing may be left in the bucket and in the database.

    fleet.py short          a few seeds, 60 s
    fleet.py long           200 seeds
    fleet.py N [SEED]       N seeds
"""
import base64, contextlib, http.client, json, os, pathlib, random, shlex, shutil, signal, subprocess, sys, threading, time, urllib.parse

from receivers import *

LEASE = 3


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
        client.start("push", "--token-file", fleet.token, "--bwlimit", "8M", f"{folder}/", f"{dialect}{fleet.url}")
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


def begun(fleet, results):
    """A node is killed while the bucket begins a multipart upload for it. At the end, `leftovers` finds nothing of that."""
    node, bucket = fleet.nodes[0], fleet.bucket
    client = Tus([node] * 3, random.Random(2))
    status, fields = client.ask("POST", "/", {"Upload-Length": str(20 * MiB), "Upload-Metadata": "filename " + base64.b64encode(b"begun").decode()})
    path = urllib.parse.urljoin("/", fields["Location"])
    bucket.server.signal(signal.SIGSTOP)
    head = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    sender = threading.Thread(target=client.ask, args=("PATCH", path, head, bytes(9 * MiB)))
    sender.start()
    time.sleep(2)
    node.kill()
    fleet.kills += 1
    sender.join()
    bucket.server.signal(signal.SIGCONT)
    deadline = time.monotonic() + 10
    while not (uploads := bucket.uploads()) and time.monotonic() < deadline:
        time.sleep(0.1)
    node.start()
    results.add("passed" if uploads == ["in/begun"] else "failed", "begun", f"{uploads} are in the bucket after the kill")
    Tus(fleet.nodes, random.Random(2)).ask("DELETE", path)


def trial(folder, results):
    """`scripts/fleet` runs the receivers until Ctrl-C: the command that it prints sends a file, and nothing is left."""
    environment = dict(os.environ, FULLBORE=str(FULLBORE), FULLBORE_ROBUSTNESS_DIR=str(folder))
    process = subprocess.Popen([ROOT / "scripts/fleet"], stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    url, command = process.stdout.readline().split()[0], shlex.split(process.stdout.readline())
    source = folder / "trial"
    source.mkdir()
    (source / "film.mov").write_bytes(random.Random(3).randbytes(9 * MiB))
    home = Client(folder / "home-trial")
    status, output, _ = home.run(*(f"{source}/" if word == "FOLDER/" else word for word in command[1:]), limit=60)
    checked = subprocess.run([FULLBORE, "check", f"{source}/", *command[3:]], env=home.environment, capture_output=True, text=True)
    process.send_signal(signal.SIGINT)
    ended = process.wait(30)
    left = [path.name for path in folder.glob("fullbore-robustness-*")]
    try:
        http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=1).connect()
        left.append(url)
    except OSError:
        pass
    text = f"push {status}, check {checked.returncode}, end {ended}, left {left}"
    isRight = (status, checked.returncode, ended, left) == (0, 0, 0, [])
    results.add("passed" if isRight else "failed", "scripts/fleet", text if isRight else f"{text}: {output} {checked.stdout} {checked.stderr}")


def compose(folder, results):
    """Packaging/compose.yaml has the same receivers: it is valid YAML, and the program reads the commands of its services."""
    text = subprocess.run(
        [ROOT / ".venv/bin/python", "-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"],
        stdin=open(ROOT / "Packaging/compose.yaml"), capture_output=True, text=True, check=True).stdout
    services, wrong = json.loads(text)["services"], []
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    for name, service in services.items():
        wrong += [f"{name} waits for {other}" for other in service.get("depends_on", []) if other not in services]
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./") and source != "./token" and not (ROOT / "Packaging" / source).exists():
                wrong.append(f"{name} mounts {source}")
        if service["image"] == "fullbore" and "entrypoint" not in service:
            # The container has the file of this name.
            words = [str(token) if word == "/token" else word for word in service["command"]]
            read = subprocess.run([FULLBORE, words[0], "--read-arguments-only", *words[1:]], capture_output=True, text=True,
                                  env=dict(os.environ, **service["environment"]))
            if read.returncode:
                wrong.append(f"{name}: {read.stderr}")
    balancer = services["balancer"]["environment"]
    nodes = {value.split(":")[0] for name, value in balancer.items() if name.startswith("NODE")}
    if nodes != {name for name in services if name.startswith("receiver")}:
        wrong.append(f"the balancer knows {sorted(nodes)}")
    read = subprocess.run(
        [shutil.which("haproxy") or "/usr/sbin/haproxy", "-c", "-f", ROOT / "Packaging/haproxy.cfg"], capture_output=True, text=True,
        env=dict(os.environ, LISTEN="127.0.0.1:8080", **{name: "127.0.0.1:1" for name in balancer if name.startswith("NODE")}))
    if read.returncode:
        wrong.append(f"haproxy: {read.stderr}")
    if shutil.which("docker") and not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        read = subprocess.run(["docker", "compose", "-f", ROOT / "Packaging/compose.yaml", "config", "-q"], capture_output=True, text=True)
        if read.returncode:
            wrong.append(f"docker compose: {read.stderr}")
    results.add("failed" if wrong else "passed", "Packaging/compose.yaml", "; ".join(wrong) or f"{len(services)} services")


def main():
    arguments = sys.argv[1:] or ["short"]
    count = {"short": 2, "long": 200}.get(arguments[0]) or int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else 1
    results = Results("fleet")
    if reason := missing():
        results.add("skipped", "all", reason)
        results.finish()
    with scratch() as folder, contextlib.ExitStack() as stack:
        compose(folder, results)
        trial(folder, results)
        fleet = Fleet(folder, stack, "--expire", "20s", "--allow-delete")
        takeover(fleet, results)
        begun(fleet, results)
        for seed in range(first, first + count):
            run(fleet, seed, results)
        # The receivers forget every upload, finished or not, and every intent 20 s after its last change. They look for old ones each 5 s.
        deadline = time.monotonic() + 60
        while (left := fleet.leftovers()) and time.monotonic() < deadline:
            time.sleep(1)
        results.add("failed" if left else "passed", "leftovers", left or f"none after {fleet.kills} kills")
        for number, node in enumerate(fleet.nodes):
            if crash := node.has_crashed():
                results.add("failed", f"node {number}", f"ended by signal {crash}")
            if PASSWORD in (log := pathlib.Path(node.log).read_text()) or urllib.parse.quote(PASSWORD) in log:
                results.add("failed", f"node {number}", "has printed the password")
    results.finish()


if __name__ == "__main__":
    main()
