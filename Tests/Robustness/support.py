"""Programs that the robustness tests run (client, servers, emulated link), and the comparison of folders."""
import contextlib, os, pathlib, random, shutil, signal, socket, subprocess, tempfile, threading, time
from xml.sax.saxutils import quoteattr

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = pathlib.Path(os.environ.get("FULLBORE", ROOT / ".build/debug/fullbore")).resolve()
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


class Failure(Exception):
    """A check failed; the text says which one."""


class Results:
    """Counts passed, failed and skipped checks. Writes a report in xunit format to the file named by FULLBORE_XUNIT."""

    def __init__(self, suite):
        self.suite, self.cases = suite, []

    def add(self, kind, name, text):
        self.cases.append((kind, name, text))
        if kind != "passed" or text:
            print(f"{kind}: {name}{': ' if text else ''}{text}", flush=True)

    def count(self, kind):
        return sum(1 for case in self.cases if case[0] == kind)

    def finish(self):
        """Prints the counts, and exits with 1 if a check failed."""
        if path := os.environ.get("FULLBORE_XUNIT"):
            with open(path, "w") as file:
                file.write(f'<testsuites>\n<testsuite name="{self.suite}" errors="0" tests="{len(self.cases)}" '
                           f'failures="{self.count("failed")}" skipped="{self.count("skipped")}">\n')
                for kind, name, text in self.cases:
                    file.write(f"<testcase classname={quoteattr(self.suite)} name={quoteattr(name)}>\n")
                    if kind == "failed":
                        file.write(f"<failure message={quoteattr(text[:2000])}></failure>\n")
                    file.write("</testcase>\n")
                file.write("</testsuite>\n</testsuites>\n")
        print(", ".join(f"{self.count(kind)} {kind}" for kind in ("passed", "failed", "skipped")))
        raise SystemExit(self.count("failed") > 0)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


@contextlib.contextmanager
def scratch():
    """A folder on a disk (not in memory) that is removed afterwards."""
    parent = pathlib.Path(os.environ.get("FULLBORE_ROBUSTNESS_DIR", "/var/tmp"))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fullbore-robustness-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Process:
    """A process of a server or of the link. It is ended at the end of the `with` block."""
    credentials = []  # options that the client needs

    def __init__(self, command, port, log, prints_url=False, environment=None, seconds=10):
        self.command, self.port, self.log = [str(c) for c in command], port, log
        self.prints_url, self.seconds = prints_url, seconds
        self.environment = dict(os.environ, **(environment or {}))
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                start_new_session=True)
        for _ in range(50 * self.seconds):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise Failure(f"{self.command[0]} does not listen on port {self.port}; see {self.log}")

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def has_crashed(self):
        """The signal that ended the process, if this test did not send it."""
        status = self.process.poll()
        return -status if status is not None and status < 0 and status not in (-signal.SIGKILL, -signal.SIGTERM) else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


def serve(folder, log, *options):
    """Fullbore's own server. It accepts requests with the link's port in `Host`, because it requires a token."""
    port, token = free_port(), folder.parent / "token"
    token.write_text("robustness-test-token")
    token.chmod(0o600)
    server = Process(
        [FULLBORE, "serve", folder, "--listen", f"127.0.0.1:{port}", "--token-file", token, *options], port, log)
    server.credentials = ["--token-file", token]
    return server


def nginx(folder, log):
    """nginx with its WebDAV module, which replaces existing files unconditionally."""
    port, run = free_port(), pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    body = run / "bodies"
    body.mkdir()
    for path in (run, body, folder):
        path.chmod(0o777)  # When root starts nginx, its workers run as another user.
    (run / "nginx.conf").write_text(f"""
worker_processes 1; pid {run}/pid; error_log {run}/error.log; events {{ }}
http {{ access_log off; client_max_body_size 0; client_body_temp_path {body};
  server {{ listen 127.0.0.1:{port}; root {folder}; location / {{ dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; }} }} }}
""")
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    return Process([binary, "-p", run, "-c", run / "nginx.conf", "-g", "daemon off;"], port, log)


def rclone_webdav(folder, log):
    port = free_port()
    return Process(["rclone", "serve", "webdav", folder, "--addr", f"127.0.0.1:{port}", "--config", "/dev/null"], port, log)


S3_KEYS = dict(AWS_ACCESS_KEY_ID="AKIATESTING", AWS_SECRET_ACCESS_KEY="testing-secret", AWS_REGION="us-east-1")


def rclone_s3(folder, log):
    """An S3 server whose buckets are the folders in `folder`."""
    port = free_port()
    binary = next((p for p in (ROOT / ".venv/bin/rclone", pathlib.Path("/usr/bin/rclone")) if has_s3(p)), None)
    if binary is None:
        return None
    keys = f"{S3_KEYS['AWS_ACCESS_KEY_ID']},{S3_KEYS['AWS_SECRET_ACCESS_KEY']}"
    return Process(
        [binary, "serve", "s3", folder, "--addr", f"127.0.0.1:{port}", "--auth-key", keys, "--config", "/dev/null"], port, log)


def has_s3(binary):
    return binary.exists() and subprocess.run([binary, "serve", "s3", "--help"], capture_output=True).returncode == 0


def slowlink(target_port, log, *, mbit, delay_ms, reset_mean=0, rate_seconds=0, seed=1):
    """An emulated link to a port of this machine: rate, delay in each direction, random connection resets."""
    binary = ROOT / ".build/slowlink"
    source = ROOT / "Benchmarks/slowlink.c"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(exist_ok=True)
        subprocess.run(["cc", "-O2", "-Wall", "-o", binary, source, "-lm"], check=True)
    port = free_port()
    command = [binary, "-l", port, "-t", f"127.0.0.1:{target_port}", "-d", delay_ms, "-u", mbit, "-D", mbit, "-s", seed]
    if reset_mean:
        command += ["-K", reset_mean]
    if rate_seconds:
        command += ["-R", rate_seconds]
    return Process(command, port, log)


def peak_memory(pid):
    """The most memory that the process has had, in bytes; 0: it has ended."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * KiB for line in lines if line.startswith("VmHWM:"))
    return 0


class Client:
    """One run of `fullbore` with its own journal and home folder."""

    def __init__(self, home):
        self.home = home
        home.mkdir(exist_ok=True)
        (home / "tmp").mkdir(exist_ok=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.environment |= S3_KEYS | {
            "HOME": str(home), "FULLBORE_JOURNAL": str(home / "journal.sqlite"), "TMPDIR": str(home / "tmp"),
            "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
        self.process = None

    def start(self, *arguments, stdin=subprocess.DEVNULL):
        self.output = open(self.home / "output.txt", "w+b")
        self.process = subprocess.Popen(
            [str(FULLBORE), *map(os.fsencode, map(str, arguments))] if not any(isinstance(a, bytes) for a in arguments)
            else [os.fsencode(FULLBORE), *(a if isinstance(a, bytes) else os.fsencode(str(a)) for a in arguments)],
            stdin=stdin, stdout=self.output, stderr=self.output, env=self.environment, start_new_session=True)
        return self

    def wait(self, limit):
        """Waits for the end of the run. Returns (exit status, output, peak memory in bytes)."""
        peak, deadline = 0, time.monotonic() + limit
        while True:
            peak = max(peak, peak_memory(self.process.pid))
            try:
                status = self.process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    os.killpg(self.process.pid, signal.SIGKILL)
                    self.process.wait()
                    raise Failure(f"did not end within {limit} s: {self.text()[-2000:]}") from None
        return status, self.text(), peak

    def run(self, *arguments, limit=600, stdin=subprocess.DEVNULL):
        return self.start(*arguments, stdin=stdin).wait(limit)

    def text(self):
        self.output.flush()
        return (self.home / "output.txt").read_text(errors="replace")


def sparse_film(path, size, seed):
    """Creates a sparse file of `size` bytes with random pieces in it, which uses little space on the disk."""
    generator = random.Random(seed)
    with open(path, "wb") as file:
        file.truncate(size)
        for at in range(0, size, 64 * MiB):
            file.seek(min(size - 64 * KiB, at + generator.randrange(32 * MiB)) if size > 64 * MiB else 0)
            file.write(generator.randbytes(min(size, 64 * KiB)))
        file.seek(max(0, size - 4096))
        file.write(generator.randbytes(min(size, 4096)))


def photographs(folder, count, size, seed):
    generator = random.Random(seed)
    for index in range(count):
        path = folder / f"{100 + index // 500}CANON" / f"IMG_{index:05}.JPG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(generator.randbytes(generator.randrange(size // 2, size * 3 // 2)))


def same_bytes(first, second):
    return subprocess.run(["cmp", "-s", "--", first, second]).returncode == 0


class Background(threading.Thread):
    """A thread that runs until the end of the `with` block, which sets `ended`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


class Every(Background):
    """Calls a function at an interval in seconds until the end of the `with` block."""

    def __init__(self, seconds, call):
        super().__init__()
        self.seconds, self.call = seconds, call

    def run(self):
        while not self.ended.wait(self.seconds):
            self.call()
