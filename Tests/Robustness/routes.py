#!/usr/bin/env python3
"""Random requests to every route of `fullbore serve`, and to what its page asks: real requests of tus, of the IETF's protocol, PUT,
forms, lists, archives, thumbnails, digests and metrics, whose methods, paths, queries, fields, lengths and bodies are changed.
Three servers are asked: with a page and downloads, with a page that only receives, and without a page. A run fails where a server
crashes, answers with a 5xx that no client can cause, is silent, or grows, and where it no longer does its work afterwards.

    routes.py short [SEED]       thirty seconds
    routes.py long [SEED]        ten minutes
    routes.py SECONDS [SEED]     so many; the seed of a run is printed, with which each client asks nearly the same again

FULLBORE names the binary.
"""
import http.client, random, re, select, signal, socket, struct, subprocess, sys, threading, time, zlib

from random_requests import TOKEN, RandomRequests
from support import *

# Seconds after which a server is started again with its folder.
ROUND = 100
MEMORY = 16 * MiB
# What a client may get: the method is not spoken, no room, too many uploads or connections, and the version of HTTP.
KNOWN = {501, 503, 505, 507}


def status(answer):
    """The status of the first response that is final; None: there is none."""
    while head := re.match(rb"HTTP/1\.[01] (\d{3}) .*?\r\n\r\n", answer, re.DOTALL):
        if head[1][:1] != b"1":
            return int(head[1])
        answer = answer[head.end():]
    return None


def ask(port, data, dice):
    """Sends the bytes, perhaps in two pieces, and returns what comes back until the server closes the connection."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.settimeout(20)
            middle = dice.randrange(len(data) + 1) if dice.random() < 0.2 else len(data)
            client.sendall(data[:middle])
            if middle < len(data):
                client.sendall(data[middle:])
            if dice.random() < 0.1:
                return b""  # The client is gone before it has its answer.
            answer, isAtEnd = b"", False
            while True:
                if not isAtEnd and not select.select([client], [], [], 0.2)[0]:
                    # A request that is not whole is answered once its client sends no more.
                    client.shutdown(socket.SHUT_WR)
                    isAtEnd = True
                if not (piece := client.recv(1 << 16)):
                    return answer
                answer = (answer + piece)[:4 * MiB]
    except (ConnectionResetError, BrokenPipeError):
        return b""  # The server need not read what it has refused.
    except TimeoutError:
        raise Failure("no answer and no end within 20 s") from None


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * KiB


def require_work(server):
    """The server still takes a file and gives it back."""
    content, headers = random.randbytes(100_000), {"Authorization": f"Bearer {TOKEN}", "If-Match": "*"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    path = "/.fullbore-page/about" if "--share" in server.command else "/"
    try:
        for method, path, body, wanted in [("POST", "/check.bin", content, (201, 204)), ("GET", path, None, (200,))]:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status not in wanted:
                raise Failure(f"{method} {path} afterwards: {answer.status} {text[:300]}")
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{path} afterwards: {error!r}") from None


def jpeg_with_preview():
    """The begin of a photograph with EXIF metadata, as far as a thumbnail needs it."""
    preview = b"\xff\xd8\xff\xdb" + bytes(60) + b"\xff\xd9"
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 26)
    tiff += struct.pack(">HHHIIHHIII", 2, 0x0201, 4, 1, 56, 0x0202, 4, 1, len(preview), 0) + preview
    block = b"Exif\0\0" + tiff
    return b"\xff\xd8\xff\xe1" + struct.pack(">H", len(block) + 2) + block


def make(store):
    """The files that requests name, also if a request has deleted them."""
    (store / "sub").mkdir(parents=True, exist_ok=True)
    for name, content in {"a.txt": b"a" * 10, "b.jpg": jpeg_with_preview() + bytes(1000), "sub/c.txt": zlib.compress(bytes(5000))}.items():
        if not (store / name).exists():
            (store / name).write_bytes(content)


class Attack:
    """Eight clients that ask a server at once, each with a random sequence of its own."""

    def __init__(self, server, store, log, seed):
        self.server, self.store, self.log, self.seed = server, store, log, seed
        self.sent, self.seen, self.failure, self.samples = 0, {}, None, []

    def run(self, seconds):
        """Asks for so many seconds. Throws what the first client that has found something says."""
        self.end, self.lock = time.monotonic() + seconds, threading.Lock()
        clients = [threading.Thread(target=self.client, args=(self.seed * 8 + number,)) for number in range(8)]
        for client in clients:
            client.start()
        while any(client.is_alive() for client in clients):
            time.sleep(0.5)
            make(self.store)
            # The first requests fill caches and start threads.
            if self.server.process.poll() is None and self.sent > 200:
                self.samples.append(memory(self.server.process.pid))
        if self.failure:
            raise Failure(self.failure)
        if self.samples and max(self.samples) - self.samples[0] > MEMORY:
            raise Failure(f"the server grows from {self.samples[0] / MiB:.0f} to {max(self.samples) / MiB:.0f} MiB in {self.sent} requests")

    def client(self, seed):
        dice = random.Random(seed)
        requests, number = RandomRequests(dice, self.server.port), 0
        while time.monotonic() < self.end and not self.failure:
            data, number = requests.next(), number + 1
            try:
                self.judge(requests, ask(self.server.port, data, dice))
            except (Failure, OSError) as failure:
                with self.lock:
                    self.failure = self.failure or f"client {seed}, request {number}: {data[:600]!r}: {failure}{self.last_words()}"

    def judge(self, requests, answer):
        requests.learn(answer)
        found = status(answer)
        with self.lock:
            self.sent += 1
            self.seen[found] = self.seen.get(found, 0) + 1
        if found is not None and found >= 500 and found not in KNOWN:
            raise Failure(f"status {found}: {answer[:300]!r}")
        if self.server.process.poll() is not None:
            raise Failure("the server has ended")

    def last_words(self):
        """How the server has ended, if it has."""
        try:
            return f"; the server has ended with {self.server.process.wait(1)}: {self.log.read_text(errors='replace')[-500:]}"
        except subprocess.TimeoutExpired:
            return ""


def play(folder, options, seconds, seed):
    """Asks one server for so many seconds. Returns a line about it."""
    store, log, token, port = folder / "in", folder / "log.txt", folder / "token", free_port()
    make(store)
    token.write_text(TOKEN)
    token.chmod(0o600)
    server = Process([FULLBORE, "serve", store, "--listen", f"127.0.0.1:{port}", "--token-file", token, "--max-size", "1M", "--max-unfinished",
                      "500", "--expire", "2s", "--allow-delete", *options], port, log)
    sent, seen, peak = 0, {}, 0
    with server:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            attack = Attack(server, store, log, seed + sent)
            attack.run(min(left, ROUND))
            sent, peak = sent + attack.sent, max([peak, *attack.samples])
            for found, count in attack.seen.items():
                seen[found] = seen.get(found, 0) + count
            require_work(server)
            server.signal(signal.SIGTERM)
            if server.process.wait(30) != 0:
                raise Failure(f"the server ends with {server.process.returncode} after {sent} requests: {log.read_text(errors='replace')[-500:]}")
            # What it remembers in its folder must not keep it from starting.
            server.start()
    counts = ", ".join(f"{count} {found or 'none'}" for found, count in sorted(seen.items(), key=lambda item: -item[1]))
    if sent > 3000 and (missing := {200, 201, 204, 400, 401, 403, 404, 409, 412, 415, 501} - set(seen)):
        raise Failure(f"the requests reach too little, no {sorted(missing)}: {counts}")
    return f"{sent} requests of seed {seed}, {peak / MiB:.0f} MiB at most: {counts}"


def main(arguments):
    if not arguments or arguments[0] not in ("short", "long") and not arguments[0].isdigit():
        raise SystemExit(__doc__)
    seconds = {"short": 30, "long": 600}.get(arguments[0]) or int(arguments[0])
    seed = int(arguments[1]) if len(arguments) > 1 else random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    results = Results("routes")
    variants = {"page and downloads": ["--share", "--download"], "page that only receives": ["--share", "--receive-only"], "no page": []}
    for number, (name, options) in enumerate(variants.items()):
        with scratch() as folder:
            try:
                results.add("passed", name, play(folder, options, seconds / len(variants), seed + number))
            except Failure as failure:
                results.add("failed", name, str(failure))
    results.finish()


main(sys.argv[1:])
