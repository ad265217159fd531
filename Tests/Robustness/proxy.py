"""A faulty proxy on loopback: it cuts connections, loses responses, responds too early, and delivers late."""
import contextlib, random, socket, threading, time

EARLY = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nUpload-Offset: 0\r\nConnection: close\r\n\r\n"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 0\r\nConnection: close\r\n\r\n"
GARBAGE = b"220 smtp.example ready\r\n"
# A shorter body fits into the buffers of the two sockets before the client reads a response. Then it is impossible to
# tell whether the server responded before it had the body.
TOLD_APART = 8 << 20
FAULTS = ("cut", "lose-answer", "early-answer", "busy", "late-delivery", "garbage", "close-at-once")


def body_length(request):
    """The value of `Content-Length`, if the head is complete."""
    head = request.split(b"\r\n\r\n")[0].lower()
    return next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)


class FaultyProxy:
    """Forwards to a port of this machine. `faults` are the kinds of faults; `limit` is the number of connections
    with a fault."""

    def __init__(self, target, seed, faults, share=0.5, limit=20):
        self.target, self.random, self.faults = target, random.Random(seed), list(faults)
        self.share, self.left, self.lock = share, limit, threading.Lock()
        self.has_received = False  # A byte of a request has arrived on any connection.
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def heal(self):
        with self.lock:
            self.left = 0

    def close(self):
        self.heal()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                fault = None
                if self.left > 0 and self.faults and self.random.random() < self.share:
                    self.left -= 1
                    fault = self.random.choice(self.faults)
                after = int(2 ** self.random.uniform(5, 22))
            threading.Thread(target=self.serve, args=(client, fault, after), daemon=True).start()

    def serve(self, client, fault, after):
        with contextlib.suppress(OSError), client:
            if fault == "close-at-once":
                return
            first = client.recv(65536)
            self.has_received = self.has_received or bool(first)
            if fault == "early-answer" and body_length(first) < TOLD_APART:
                fault = None
            if fault in ("early-answer", "busy", "garbage"):
                client.sendall({"early-answer": EARLY, "busy": BUSY, "garbage": GARBAGE}[fault])
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                back = threading.Thread(target=self.pump, args=(server, client, 0 if fault == "lose-answer" else None), daemon=True)
                back.start()
                self.up(first, client, server, after if fault in ("cut", "late-delivery") else None, fault == "late-delivery")
                back.join()

    def up(self, data, client, server, after, late):
        passed, held = 0, []
        while True:
            if not data:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_WR)
                return
            passed += len(data)
            if after is not None and passed >= after:
                if not late:
                    client.close()
                    server.close()
                    return
                # The client assumes that the request is lost, but the server receives more of it later.
                held.append(data)
                client.setblocking(False)
                with contextlib.suppress(OSError):
                    while more := client.recv(65536):
                        held.append(more)
                client.close()
                for piece in held:
                    time.sleep(0.3)
                    server.sendall(piece)
                server.close()
                return
            server.sendall(data)
            data = client.recv(65536)

    def pump(self, source, sink, most):
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                passed += len(data)
                if most is not None and passed > most:
                    sink.close()
                    source.close()
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
