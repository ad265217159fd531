"""Our server: its speed, its memory, and what slow or many clients do to it."""
import http.client, shutil, socket, threading, time
import harness
from harness import FULLBORE, KiB, MiB, SHM, DataSet, measure
from result import Result, rounds


def server(o):
    """our server against nginx dav: `curl -T` of a large file into a folder on tmpfs"""
    (data, path), result = harness.large_file(o), Result(f"curl -T of {o.large >> 30} GiB into a tmpfs folder")
    with harness.nginx(SHM / "nginx") as nginx, harness.serve(SHM / "fullbore") as ours:
        folders = {"nginx dav": (nginx, SHM / "nginx"), "fullbore serve": (ours, SHM / "fullbore")}

        def put(label):
            there, folder = folders[label]
            try:
                return measure(
                    label, ["curl", "-sSf", "-H", "Expect:", "-o", "/dev/null", "-T", path, f"{there.url}/{path.name}"],
                    data.bytes, server=there)
            finally:
                (folder / path.name).unlink(missing_ok=True)

        rounds(result, {label: lambda label=label: put(label) for label in folders}, o.rounds)
        result.goal("server's peak memory", ours.peak() / MiB, "<=", 128, " MiB")
    result.goal("throughput / nginx's", result.ratio("fullbore serve", "nginx dav", "rate"), ">=", 1)
    return result


def connections(o):
    """memory of our server with 1,000 uploads held open in mid-body"""
    count, body, sent = 1000, MiB, 300 * KiB
    result = Result(f"{count:,} uploads held open")
    with harness.serve(SHM / "held") as ours, harness.many_files():  # ours has the limits a shell gives, and raises them
        host, port = ours.url.split("//")[1].split(":")
        held = []
        for i in range(count):
            s = socket.create_connection((host, int(port)), 10)
            s.sendall(f"PUT /held/{i}.bin HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {body}\r\n\r\n".encode())
            s.sendall(bytes(sent))
            held.append(s)
        time.sleep(1)
        peak = ours.peak()
        for s in held:
            s.sendall(bytes(body - sent))
        answers = [s.recv(4096).split(b" ")[1] for s in held]
        for s in held:
            s.close()
    result.goal("server's peak memory", peak / MiB, "<=", 128, " MiB")
    result.goal("of them finished well afterwards", sum(a in (b"200", b"201", b"204") for a in answers), ">=", count)
    return result


def crowded(o):
    """memory of our server with 200 uploads under way and 1,000 connections that wait for their next request"""
    uploads, idle, body, sent = 200, 1000, 8 * MiB, MiB
    result = Result(f"{uploads} uploads under way, {idle:,} idle connections")
    with harness.serve(SHM / "crowded") as ours, harness.many_files():
        host, port = ours.url.split("//")[1].split(":")

        def connect(request):
            s = socket.create_connection((host, int(port)), 20)
            s.sendall(f"{request}\r\nHost: {host}:{port}\r\n".encode())
            return s

        def status(s):
            return s.recv(4096).split(b" ")[1]

        waiting = [connect("GET /nothing HTTP/1.1") for _ in range(idle)]
        for s in waiting:
            s.sendall(b"\r\n")
        answered = sum(status(s) == b"404" for s in waiting)
        under_way = [connect(f"PUT /crowded/{i}.bin HTTP/1.1\r\nContent-Length: {body}") for i in range(uploads)]
        for s in under_way:
            s.sendall(b"\r\n" + bytes(sent))
        time.sleep(1)
        peak = ours.peak()
        for s in under_way:
            s.sendall(bytes(body - sent))
        finished = sum(status(s) == b"201" for s in under_way)
        for s in waiting:
            s.sendall(f"GET /nothing HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        again = sum(status(s) == b"404" for s in waiting)
        for s in waiting + under_way:
            s.close()
    result.goal("server's peak memory", peak / MiB, "<=", 64, " MiB")
    result.goal("uploads that finished well", finished, ">=", uploads)
    result.goal("idle connections that were answered twice", min(answered, again), ">=", idle)
    return result


def attacked(o):
    """a push to our server while 100 clients send a byte at a time, against the same push without them"""
    (data, path), result = harness.large_file(o), Result(f"push of {o.large >> 30} GiB under 100 slow clients")
    with harness.serve(SHM / "attacked") as ours:
        host, port = ours.url.split("//")[1].split(":")

        def push(label, attackers):
            stop, threads = threading.Event(), []

            def drip(number):
                """A head or a body, a byte ten times a second; a connection that is closed is made anew."""
                starts = (b"GET / HTTP/1.1\r\nX: ",
                          f"PUT /drip{number} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 1000000\r\n\r\n".encode())
                while not stop.is_set():
                    try:
                        with socket.create_connection((host, int(port)), 5) as s:
                            s.sendall(starts[number % 2])
                            while not stop.wait(0.1):
                                s.sendall(b"a")
                    except OSError:
                        pass

            for number in range(attackers):
                threads.append(threading.Thread(target=drip, args=(number,), daemon=True))
                threads[-1].start()
            time.sleep(1)
            try:
                return measure(label, [FULLBORE, "push", "--quiet", path, f"put+{ours.url}/"], data.bytes, server=ours)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
                (SHM / "attacked" / path.name).unlink(missing_ok=True)

        rounds(result, {"alone": lambda: push("alone", 0), "under attack": lambda: push("under attack", 100)}, o.rounds)
    result.goal("speed under attack / alone", result.ratio("under attack", "alone", "rate"), ">=", 0.9)
    return result


def unfinished(o):
    """a push of 2,000 small files, and the server's start, beside 10,000 uploads that nobody finishes"""
    count, data = 10_000, DataSet("small", [50 * KiB] * 2000).make()
    data.warm()
    result = Result(f"2,000 x 50 KiB beside {count:,} unfinished uploads")
    folder = SHM / "unfinished"
    with harness.serve(folder) as ours:
        host = ours.url.split("//")[1]
        connection = http.client.HTTPConnection(host, timeout=20)
        for number in range(count):
            connection.request("POST", "/", bytes(3), {
                "Tus-Resumable": "1.0.0", "Upload-Length": "10", "Content-Type": "application/offset+octet-stream"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                raise SystemExit(f"upload {number} was not begun: {answer.status}")
        connection.close()

    def push(label, place):
        began = time.monotonic()
        with harness.serve(place) as ours:
            started, cpu = time.monotonic() - began, -1.0
            while cpu != ours.cpu():  # what it looks through after its start is told by itself
                cpu = ours.cpu()
                time.sleep(0.2)
            run = measure(label, [FULLBORE, "push", "--quiet", data.folder, f"put+{ours.url}/up/"], data.bytes, data.files, server=ours)
            run |= {"started": started, "settled": cpu}
        shutil.rmtree(place / "up", ignore_errors=True)
        return run

    rounds(result, {"alone": lambda: push("alone", SHM / "alone"), "beside": lambda: push("beside", folder)}, o.rounds)
    shutil.rmtree(folder)
    result.goal("speed beside / alone", result.ratio("beside", "alone", "rate"), ">=", 0.95)
    result.goal("server's CPU beside / alone", result.ratio("beside", "alone", "server_cpu_per_gb"), "<=", 1.1)
    result.goal("start of the server", result.median("beside", "started"), "<=", 0.5, " s")
    result.goal("CPU that it takes until it has looked through them", result.median("beside", "settled"), "<=", 1, " s")
    return result
