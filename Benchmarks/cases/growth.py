"""What a push costs before its first byte, and whether its cost stays the same as the work grows."""
import contextlib, os, shutil, socket, statistics, subprocess, tempfile, time
import harness
from harness import FULLBORE, KiB, MiB, WORK, DataSet, measure
from result import Result


@contextlib.contextmanager
def first_bytes():
    """A place that answers what is asked before a body comes. Gives the port and a wait for the first byte of a PUT."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def wait():
            while True:
                connection, _ = listener.accept()
                with connection:
                    if connection.recv(65536).startswith(b"PUT "):
                        return time.monotonic()
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        yield listener.getsockname()[1], wait


def until_first_byte(*sources):
    """Seconds from the start of a push to the first byte of its first request on the wire."""
    with tempfile.TemporaryDirectory(dir=WORK / "tmp") as tmp, first_bytes() as (port, wait):
        begin = time.monotonic()
        push = subprocess.Popen(
            [FULLBORE, "push", "--quiet", "--journal", f"{tmp}/journal.sqlite", *sources, f"put+http://127.0.0.1:{port}/up/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return wait() - begin
        finally:
            push.kill()
            push.wait()


def milliseconds(command):
    """The best of 20 starts: what else the machine does only makes it longer."""
    def once():
        begin = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.monotonic() - begin

    return min(once() for _ in range(20)) * 1000


def start(o):
    """the start: `--version` against a C program that is linked to the same libraries, and the first byte of one file"""
    result = Result("start")
    libraries = ["-lcurl", "-lsqlite3", "-lssl", "-lcrypto"]
    binary = WORK / "bin" / "start"
    subprocess.run(["cc", "-O2", "-Wl,--no-as-needed", "-o", binary, harness.HERE / "start.c", *libraries], check=True)
    bare, ours = milliseconds([binary]), milliseconds([FULLBORE, "--version"])
    result.goal(f"`--version`, over a C program's {bare:.1f} ms", ours - bare, "<=", 10, " ms")
    data = DataSet("one", [2 * MiB]).make()
    firsts = [until_first_byte(data.paths()[0]) for _ in range(max(5, o.rounds))]
    result.goal("first byte on the wire, one file", statistics.median(firsts) * 1000, "<=", 100, " ms")
    return result


class Sparse:
    """Files of 4 KiB without content, 1,000 to a folder: a million of them take no room but their names'."""

    def __init__(self, count):
        self.files, self.bytes = count, count * 4 * KiB
        self.folder = WORK / "data" / f"sparse-{count}"

    def make(self):
        mark = self.folder.with_suffix(".done")
        if not mark.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            for i in range(self.files):
                if i % 1000 == 0:
                    folder = self.folder / f"{i // 1000:04}"
                    folder.mkdir(parents=True)
                with open(folder / f"IMG_{i:07}.jpg", "wb", buffering=0) as f:
                    os.truncate(f.fileno(), 4 * KiB)
            mark.touch()
        return self


def growth(o):
    """1,000 to 1,000,000 small files, sparse, discarded by the server: CPU a file and memory stay as they are"""
    counts = (1000, 20_000) if o.quick else (1000, 10_000, 100_000, 1_000_000)
    result = Result(f"{counts[0]:,} to {counts[-1]:,} x 4 KiB")
    with harness.hole() as hole:
        for count in counts:
            data = Sparse(count).make()
            command = [FULLBORE, "push", "--quiet", f"{data.folder}/", f"put+{hole.url}/up/"]
            # As many files in all at each size, at least: a short run says little.
            for _ in range(max(1, min(5, 20_000 // count))):
                run = measure(f"{count}", command, data.bytes, data.files, stats=hole.url, limit=3600)
                result.runs.setdefault(f"fullbore {count:,}", []).append(run)
            per_file = statistics.median(r["cpu"] for r in result.runs[f"fullbore {count:,}"]) / count * 1e6
            print(f"  {count:9,} files {run['wall']:8.2f} s  {per_file:6.1f} µs of CPU a file  {run['peak'] / MiB:5.1f} MiB", flush=True)
    few, most = (f"fullbore {counts[i]:,}" for i in (0, -1))
    per_file = {name: result.median(name, "cpu") / result.runs[name][0]["files"] for name in (few, most)}
    result.goal(f"CPU a file, {counts[-1]:,} / {counts[0]:,} files", per_file[most] / per_file[few], "<=", 1.1)
    result.goal(f"memory, {counts[-1]:,} / {counts[0]:,} files", result.median(most, "peak") / result.median(few, "peak"), "<=", 1.1)
    result.goal("peak memory", result.median(most, "peak") / MiB, "<=", 32, " MiB")
    return result
