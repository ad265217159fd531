#!/usr/bin/env python3
"""Fifty clients at once that behave as the page of `fullbore serve --share`: they ask what is offered, list the folder, create
tus uploads, send pieces of 1 MiB, break connections in the middle of a piece and go on with HEAD, and look at thumbnails.
Checks every byte and the server's memory, and prints its processor time. Then clients that ask for a long list and read
nothing: each list is in memory once.

    browsers.py short         about ten seconds
    browsers.py long          larger files and more cuts; some minutes
"""
import base64, contextlib, hashlib, http.client, json, random, re, sys, threading, time
from urllib.parse import urljoin

from support import *

CLIENTS = 50
TOKEN = "robustness-test-token"
MEMORY = 64 * MiB
PIECE = 1 * MiB


class Cut(Exception):
    """This client has broken its connection."""


class Browser:
    def __init__(self, port, number, sizes, cut_chance):
        self.port, self.number, self.sizes, self.cut_chance = port, number, sizes, cut_chance
        self.dice = random.Random(number)
        self.connection, self.cuts, self.problem, self.sums = None, 0, None, {}

    def ask(self, method, path, headers=None, body=None):
        headers = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
        for attempt in range(20):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.connection.request(method, path, body=body, headers=headers)
                answer = self.connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, http.client.HTTPException):
                self.drop()
                if body is not None:
                    raise Cut from None
                time.sleep(0.1 * attempt)
        raise Failure(f"{method} {path} was never answered")

    def drop(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def cut(self, path, offset, body):
        """Sends a part of a piece, and breaks the connection."""
        self.drop()
        self.cuts += 1
        with socket.create_connection(("127.0.0.1", self.port), 30) as s:
            head = (f"PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nTus-Resumable: 1.0.0\r\n"
                    f"Content-Type: application/offset+octet-stream\r\nUpload-Offset: {offset}\r\nContent-Length: {len(body)}\r\n\r\n")
            s.sendall(head.encode() + body[:self.dice.randrange(len(body))])

    def send(self, name, size):
        content = self.dice.randbytes(min(size, PIECE))
        file = lambda at: content[at % PIECE:][:min(PIECE - at % PIECE, size - at)]
        self.sums[name] = (content, size)
        tus = {"Tus-Resumable": "1.0.0"}
        metadata = f"filename {base64.b64encode(name.encode()).decode()},filetype {base64.b64encode(b'image/jpeg').decode()}"
        status, headers, text = self.ask("POST", "/in/", tus | {"Upload-Length": str(size), "Upload-Metadata": metadata})
        if status != 201:
            raise Failure(f"creation of {name}: {status} {text[:200]}")
        path, at = urljoin("/in/", headers["Location"]), 0
        while at < size:
            body = file(at)
            try:
                if self.dice.random() < self.cut_chance:
                    self.cut(path, at, body)
                    raise Cut
                status, headers, text = self.ask("PATCH", path, tus | {
                    "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(at)}, body)
                if status == 204:
                    at = int(headers["Upload-Offset"])
                    continue
                if status not in (409, 423, 503):
                    raise Failure(f"PATCH of {name} at {at}: {status} {text[:200]}")
            except Cut:
                pass
            time.sleep(0.05)
            status, headers, _ = self.ask("HEAD", path, tus)
            if status != 200:
                raise Failure(f"HEAD of {name}: {status}")
            at = int(headers["Upload-Offset"])

    def look(self):
        status, _, text = self.ask("GET", "/in/", {"Accept": "application/json"})
        if status not in (200, 404, 503):
            raise Failure(f"the list: {status}")
        if status != 200:
            return
        for entry in json.loads(text)["entries"][:20]:
            if entry.get("thumbnail"):
                status, *_ = self.ask("GET", "/in/" + entry["thumbnail"].removeprefix("./"))
                if status not in (200, 404, 503):
                    raise Failure(f"a thumbnail: {status}")

    def run(self):
        try:
            self.ask("GET", "/", {"Accept": "text/html"})
            for index, size in enumerate(self.sizes):
                self.ask("GET", "/.fullbore-page/about")
                self.look()
                self.send(f"IMG {self.number}-{index}.jpg", size)
        except Exception as problem:  # also a mistake of this program must be seen
            self.problem = problem
        self.drop()


def expected(content, size):
    sum = hashlib.sha256()
    for at in range(0, size, PIECE):
        sum.update(content[:min(PIECE, size - at)])
    return sum.hexdigest()


def check(sizes, cut_chance):
    with scratch() as work:
        store = work / "store"
        (store / "in").mkdir(parents=True)
        with serve(store, work / "log", "--share", "--download", "--json") as server:
            browsers = [Browser(server.port, number, sizes, cut_chance) for number in range(CLIENTS)]
            threads = [threading.Thread(target=browser.run) for browser in browsers]
            start = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - start
            peak = peak_memory(server.process.pid)
            fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")")[1].split()
            busy = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            problems = [f"client {b.number}: {b.problem}" for b in browsers if b.problem]
            if problems:
                raise Failure(f"{len(problems)} clients failed: {problems[0]}; {(work / 'log').read_text()[-1000:]}")
            for browser in browsers:
                for name, (content, size) in browser.sums.items():
                    with open(store / "in" / name, "rb") as file:
                        if hashlib.file_digest(file, "sha256").hexdigest() != expected(content, size):
                            raise Failure(f"{name} has other bytes")
            if peak > MEMORY:
                raise Failure(f"{peak / MiB:.1f} MiB of memory, {MEMORY >> 20} allowed")
            mib, cuts = CLIENTS * sum(sizes) / MiB, sum(b.cuts for b in browsers)
            return (f"{CLIENTS * len(sizes)} files, {mib:.0f} MiB, {cuts} cuts in {seconds:.1f} s; the server: "
                    f"{peak / MiB:.1f} MiB, {busy:.1f} s of processor time")


def slow_lists():
    """Nine clients ask for a list of 10,000 long names and read nothing. Returns what the server's memory was."""
    with scratch() as work, contextlib.ExitStack() as clients:
        store = work / "store"
        store.mkdir()
        for index in range(10_000):
            (store / f"{index:05}-{'x' * 230}").touch()
        with serve(store, work / "log", "--share", "--download", "--json") as server:
            before, promised = memory(server.process.pid), 0
            for _ in range(9):
                client = clients.enter_context(socket.socket())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                client.settimeout(30)
                client.connect(("127.0.0.1", server.port))
                client.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
                               "Accept: application/json\r\n\r\n".encode())
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(512)
                if not head.startswith(b"HTTP/1.1 200"):
                    raise Failure(f"the list: {head[:200]}")
                promised += int(re.search(rb"Content-Length: (\d+)", head)[1])
            grown = memory(server.process.pid) - before
            text = f"lists of {promised / MiB:.1f} MiB take {grown / MiB:.1f} MiB while nobody reads them"
            if promised < 40 * MiB or grown > 1.6 * promised:
                raise Failure(text)
            return text


def memory(process):
    """The resident memory of the process in bytes."""
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text())[1]) * KiB


def main(arguments):
    if arguments not in (["short"], ["long"]):
        raise SystemExit(__doc__)
    is_long = arguments == ["long"]
    sizes = [100_000, 3 * MiB, 1, 20 * MiB, 1_500_000] * 4 if is_long else [100_000, 3 * MiB + 5, 1]
    results = Results("browsers")
    for name, work in [("fifty browsers", lambda: check(sizes, 0.1)), ("slow lists", slow_lists)]:
        try:
            results.add("passed", name, work())
        except Failure as failure:
            results.add("failed", name, str(failure))
    results.finish()


main(sys.argv[1:])
