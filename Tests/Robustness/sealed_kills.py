#!/usr/bin/env python3
"""Sealed pushes that are killed again and again, over every protocol, while sources change. Every file must open with `age` at the
end, and a relay that keeps all bytes of the client must never have seen two contents under one key at one place of a file.

    sealed_kills.py short           40 kills
    sealed_kills.py long            1,000 kills
    sealed_kills.py N [SEED]        N kills
"""
import contextlib, os, pathlib, random, re, shutil, signal, socket, subprocess, sys, threading, time, urllib.parse

from support import *

# The header of a file for one key of age, and the nonce: they are those of one file key.
PREFIX = 184
PART = 5 * MiB
DIALECTS = ("put+", "tus+", "tus+ in parts", "resumable+", "dav+", "s3")


class Relay:
    """Passes connections on to a port, and keeps what the client has sent and the server has answered. `room`: the bytes of the
    client that are still passed on, while the rest is swallowed; None: all are. What was swallowed is sent again later."""

    def __init__(self, target):
        self.target, self.connections, self.room = target, [], None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            sent, received = bytearray(), bytearray()
            self.connections.append((sent, received))
            for source, target, kept in ((client, server, sent), (server, client, received)):
                threading.Thread(target=self.copy, args=(source, target, kept, kept is sent), daemon=True).start()

    def copy(self, source, target, kept, is_up):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                kept += data
                if is_up and self.room is not None:
                    data = data[:max(0, self.room)]
                    self.room -= len(data)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def take(self):
        """The connections since the last call. No client may be running."""
        time.sleep(0.1)
        taken, self.connections = self.connections, []
        return taken


def field(name, head):
    found = re.search(rb"\r\n" + name + rb":[ \t]*([^\r]*)", head, re.IGNORECASE)
    return found.group(1).decode() if found else None


def unchunked(data, is_framed):
    """The content of a chunked body, and the bytes behind it. `is_framed`: chunks may carry a signature of S3."""
    content, at = b"", 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end].split(b";")[0] or b"0", 16)
        content += data[end + 2:end + 2 + size]
        at = end + 2 + size + 2
        if size == 0:
            behind = data.find(b"\r\n\r\n", end)
            return content, (data[behind + 4:] if behind >= 0 and not is_framed else data[at:])
    return content, b""


def segments(connection, number):
    """(upload, offset, bytes) of each request that has bytes of a file."""
    sent, received = map(bytes, connection)
    places = iter([field(b"location", head) for head in re.split(rb"(?=HTTP/1\.1 \d{3})", received)
                   if re.match(rb"HTTP/1\.1 (2\d\d|104)", head) and field(b"location", head)])
    rest, creations = sent, 0
    while (end := rest.find(b"\r\n\r\n")) >= 0:
        head, rest = rest[:end], rest[end + 4:]
        words = head.split(b"\r\n")[0].decode(errors="replace").split(" ")
        method, target = words[0], words[1] if len(words) > 1 else ""
        if field(b"transfer-encoding", head) == "chunked":
            body, rest = unchunked(rest, False)
        else:
            length = int(field(b"content-length", head) or 0)
            body, rest = rest[:length], rest[length:]
        if "aws-chunked" in (field(b"content-encoding", head) or ""):
            body = unchunked(body, True)[0]
        upload, offset = f"{number} {len(rest)}", int(field(b"upload-offset", head) or 0)
        if method == "PATCH":
            upload = path_of(target, "")
        elif method == "POST" and (field(b"tus-resumable", head) or field(b"upload-complete", head)):
            place = next(places, None)
            upload = path_of(target, place) if place else upload
        elif part := re.search(r"partNumber=(\d+)", target):
            upload, offset = re.search(r"uploadId=([^&]*)", target).group(1), (int(part.group(1)) - 1) * PART
        elif method not in ("PUT", "POST") or target.endswith("?uploads"):
            continue
        if body and not body.startswith(b"<"):
            yield upload, offset, body


def path_of(target, place):
    """The path of a URL that may be relative to the target of its request."""
    return urllib.parse.urlsplit(urllib.parse.urljoin(f"http://host{target}", place)).path


class Seen:
    """All sealed bytes by their key and their place in the file."""

    def __init__(self):
        self.prefixes, self.files, self.waiting, self.compared = {}, {}, [], 0

    def add(self, connections):
        found = self.waiting + [s for n, c in enumerate(connections) for s in segments(c, f"{time.monotonic()} {n}")]
        self.waiting = []
        for upload, offset, body in found:
            if offset == 0 and len(body) >= PREFIX and body.startswith(b"age-encryption.org/v1\n"):
                self.prefixes[upload] = body[:PREFIX]
        for upload, offset, body in found:
            # A part of tus is an upload of its own, which does not begin with the header: it stays under one key.
            if prefix := self.prefixes.get(upload) or (upload if upload.startswith("/") else None):
                self.compare(prefix, offset, body)
            elif offset > 0:
                self.waiting.append((upload, offset, body))

    def compare(self, prefix, offset, body):
        content, known = self.files.setdefault(prefix, (bytearray(), bytearray()))
        end = offset + len(body)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
            known.extend(bytes(end - len(known)))
        before = bytes(content[offset:end])
        mask = bytes(known[offset:end])
        if before != body:
            for place, (old, new, is_known) in enumerate(zip(before, body, mask)):
                if is_known and old != new:
                    raise Failure(f"two contents under one key: byte {offset + place}")
        self.compared += sum(mask)
        content[offset:end] = body
        known[offset:end] = b"\1" * len(body)


def change(files, generator):
    """Changes bytes of a file, sometimes so that its size and its time stay."""
    path = generator.choice(files)
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(generator.randrange(status.st_size))
        file.write(generator.randbytes(8)[:status.st_size - file.tell()])
    if generator.random() < 0.5:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def start(dialect, store, log):
    if dialect == "s3":
        (store / "media").mkdir()
        return rclone_s3(store, log)
    return rclone_webdav(store, log) if dialect == "dav+" else serve(store, log)


def check(dialect, kills, generator):
    with scratch() as folder, contextlib.ExitStack() as stack:
        store, log, key = folder / "store", folder / "log.txt", folder / "key.txt"
        store.mkdir()
        subprocess.run(["age-keygen", "-o", key], check=True, capture_output=True)
        recipient = re.search(r"age1\w+", key.read_text()).group(0)
        server = start(dialect, store, log)
        if server is None:
            return "skipped: no rclone that serves S3 (scripts/bootstrap test)"
        stack.enter_context(server)
        relay, seen, client = Relay(server.port), Seen(), Client(folder / "home")
        done, rounds = 0, 0
        while done < kills:
            rounds += 1
            card = folder / f"card{rounds}"
            card.mkdir()
            files = [card / f"{name}.mov" for name in ("film", "a", "b", "c")]
            for path, size in zip(files, (24 * MiB, 300_000, 70_000, 1)):
                path.write_bytes(generator.randbytes(size))
            flags = ["--parts-at-once", "3" if dialect.endswith("in parts") else "1"]
            if dialect == "s3":
                place = ["s3://media/in/", "--endpoint", f"http://127.0.0.1:{relay.port}", "--addressing", "path",
                         "--part-size", str(PART)]
                arrived = store / "media/in"
            else:
                place = [f"{dialect.split()[0]}http://127.0.0.1:{relay.port}/",
                         *server.credentials]
                arrived = store
            arguments = ["push", "--quiet", "--overwrite", "--seal", recipient, *flags, card, *place]
            for _ in range(generator.randrange(3, 9)):
                relay.room = generator.randrange(1 * MiB, 30 * MiB)
                client.start(*arguments, "--bwlimit", "40M")
                time.sleep(generator.uniform(0.05, 0.9))
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(client.process.pid, signal.SIGKILL)
                client.process.wait()
                done += 1
                seen.add(relay.take())
                if generator.random() < 0.3:
                    change(files, generator)
            relay.room = None
            status, text, _ = client.run(*arguments, limit=120)
            seen.add(relay.take())
            if status != 0:
                raise Failure(f"exit {status}: {text[-2000:]}")
            for path in files:
                sealed = arrived / card.name / f"{path.name}.age"
                opened = subprocess.run(["age", "-d", "-i", key, sealed], capture_output=True)
                if opened.returncode != 0 or opened.stdout != path.read_bytes():
                    raise Failure(f"{sealed.name}: {opened.stderr.decode()[-300:] or 'another content'}")
            shutil.rmtree(card)
        if not seen.files:
            raise Failure("the relay has recognized no sealed bytes")
        return f"{done} kills, {rounds * 4} files opened, {len(seen.prefixes)} uploads, {seen.compared / MiB:.0f} MiB seen twice"


def main(arguments):
    if not arguments or not (arguments[0] in ("short", "long") or arguments[0].isdigit()):
        raise SystemExit(__doc__)
    results = Results("sealed-kills")
    if not (shutil.which("age") and shutil.which("age-keygen")):
        results.add("skipped", "all", "no age (scripts/bootstrap test)")
        results.finish()
    kills = {"short": 40, "long": 1000}.get(arguments[0]) or int(arguments[0])
    seed = arguments[1] if len(arguments) > 1 else str(random.randrange(1 << 30))
    print(f"seed {seed}", flush=True)
    for dialect in DIALECTS:
        try:
            text = check(dialect, -(-kills // len(DIALECTS)), random.Random(f"{seed} {dialect}"))
            results.add("skipped" if text.startswith("skipped") else "passed", dialect, text)
        except Failure as failure:
            results.add("failed", dialect, str(failure))
    results.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
