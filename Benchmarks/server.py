#!/usr/bin/env python3
"""Compares several builds of the server in interleaved rounds: medians of its CPU time and of its memory.

    Benchmarks/server.py [--rounds N] [--folder FOLDER] [--client BINARY] [--only CASE] BINARY...

FOLDER should be in memory (/dev/shm), so that no disk is measured. BINARY is a built `fullbore`. The first of them is also
the client, unless --client names another one.
"""
import argparse, os, pathlib, re, shutil, signal, socket, statistics, subprocess, sys, tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Tests/Robustness"))
import support  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, binary, folder, *options):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        command = [binary, "serve", folder, "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline().decode()
        self.url = re.search(r"https?://\S+", line).group(0)
        self.port = int(re.search(r":(\d+)/", line).group(1))

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self, name="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith(name))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def connect(self, port=None):
        return socket.create_connection(("127.0.0.1", port or self.port))


def one_file(server, source, length, port=None):
    """One PUT of a file without TLS, to the server or to a port in front of it."""
    connection = server.connect(port)
    connection.sendall(f"PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    before = server.cpu()
    with open(source, "rb") as file:
        connection.sendfile(file, count=length)
    assert b" 201 " in connection.recv(1000)
    return server.cpu() - before


def over_slow_link(server, source, length, log):
    """The same over a link of 50 Mbit/s, where bytes arrive in packets."""
    with support.slowlink(server.port, log, mbit=50, delay_ms=10) as link:
        return one_file(server, source, length, link.port)


def by_push(server, client, source, *options):
    """A push of all files in a folder, or of one file."""
    before = server.cpu()
    home = tempfile.mkdtemp()
    environment = dict(os.environ, HOME=home, XDG_STATE_HOME=home)
    command = [client, "push", *options, source, "put+" + server.url]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(home)
    return server.cpu() - before


def idle(server, count):
    """Idle connections after one response."""
    connections = [server.connect() for _ in range(count)]
    for connection in connections:
        connection.sendall(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for connection in connections:
        assert b" 404 " in connection.recv(1000)
    return server.memory()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm/fullbore-server")
    parser.add_argument("--client")
    parser.add_argument("--only", default="", help="cases whose name begins so")
    parser.add_argument("binaries", nargs="+")
    options = parser.parse_args()
    client = options.client or options.binaries[0]
    work = options.folder + ".work"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work + "/small")
    with open(work + "/large", "wb") as file:
        file.truncate(4 << 30)
    with open(work + "/tls", "wb") as file:
        file.truncate(1 << 30)
    for number in range(10_000):
        with open(f"{work}/small/{number}", "wb") as file:
            file.write(os.urandom(1 << 10) * 50)
    certificate, key = work + "/cert.pem", work + "/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, stderr=subprocess.DEVNULL)
    tls = ["--tls-cert", certificate, "--tls-key", key]
    cases = {
        "4 GiB in the clear, CPU s": ([], lambda server: one_file(server, work + "/large", 4 << 30)),
        "200 MiB over 50 Mbit/s, CPU s": ([], lambda server: over_slow_link(server, work + "/large", 200 << 20, pathlib.Path(work) / "link.txt")),
        "10,000 files of 50 KiB, CPU s": ([], lambda server: by_push(server, client, work + "/small")),
        "1 GiB by TLS, CPU s": (tls, lambda server: by_push(server, client, work + "/tls", "--cacert", certificate)),
        "1,000 idle connections, MiB": ([], lambda server: idle(server, 1000)),
        "one connection, MiB": ([], lambda server: idle(server, 1)),
    }
    cases = {name: case for name, case in cases.items() if name.startswith(options.only)}
    found = {}
    for turn in range(options.rounds):
        for name, (arguments, measure) in cases.items():
            for binary in options.binaries if turn % 2 == 0 else reversed(options.binaries):
                server = Server(binary, options.folder, *arguments)
                try:
                    found.setdefault((name, binary), []).append(measure(server))
                finally:
                    server.stop()
                    shutil.rmtree(options.folder, ignore_errors=True)
    shutil.rmtree(work)
    for name in cases:
        print(name)
        for binary in options.binaries:
            values = found[name, binary]
            print(f"  {statistics.median(values):8.2f}  {[round(value, 2) for value in values]}  {binary}")


main()
