"""Common code of the benchmarks: C programs, data sets, servers, one measured run of a client."""
import contextlib, json, os, pathlib, random, resource, shutil, signal, socket, ssl, subprocess, sys, tempfile, threading, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path(os.environ.get("FULLBORE_BENCH_DIR", HERE / "work")).resolve()
SHM = pathlib.Path("/dev/shm") / f"fullbore-bench-{os.getpid()}"
FULLBORE = os.environ.get("FULLBORE", "fullbore")
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


def prepare():
    """Builds the C programs whose sources are newer."""
    for name in ("bin", "data", "tmp"):
        (WORK / name).mkdir(parents=True, exist_ok=True)
    libraries = {"hole": ["-lssl", "-lcrypto"], "slowlink": ["-lm"], "limit": ["-pthread", "-lssl", "-lcrypto"], "timed": []}
    for name, flags in libraries.items():
        source, binary = HERE / f"{name}.c", WORK / "bin" / name
        if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["cc", "-O2", "-Wall", "-o", binary, source, *flags], check=True)


def release(product):
    """Builds one of the project's own programs in release mode. Returns its path."""
    build = ["swift", "build", "-c", "release", "--product", product]
    subprocess.run(build, cwd=HERE.parent, check=True, stdout=sys.stderr)
    folder = subprocess.run([*build[:4], "--show-bin-path"], cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(folder.stdout.strip()) / product


class DataSet:
    """A folder of incompressible files, the same on every machine."""

    def __init__(self, name, sizes):
        self.name, self.sizes = name, sizes
        self.files, self.bytes = len(sizes), sum(sizes)
        self.folder = WORK / "data" / name

    def make(self):
        """Writes missing files. A file beside the folder marks that it is complete."""
        mark = self.folder.with_suffix(".done")
        if mark.exists():
            return self
        shutil.rmtree(self.folder, ignore_errors=True)
        r = random.Random(self.name)
        for path, size in zip(self.paths(), self.sizes):
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb", buffering=0) as f:
                for at in range(0, size, 8 * MiB):
                    f.write(r.randbytes(min(8 * MiB, size - at)))
        mark.touch()
        return self

    def paths(self):
        """Divides the files into folders of 200, as cameras do."""
        return [self.folder / f"{i // 200:03}" / f"IMG_{i:05}.jpg" for i in range(self.files)]

    def warm(self):
        """Reads all files into the page cache, so that no client pays for the disk."""
        for path in self.paths():
            with open(path, "rb", buffering=0) as f:
                while f.read(8 * MiB):
                    pass


def large_file(o):
    """The large file of a run, in the page cache: its data set and its path."""
    data = DataSet(f"large-{o.large >> 30}", [o.large]).make()
    data.warm()
    return data, data.paths()[0]


@contextlib.contextmanager
def many_files():
    """Raises this process's limit of open files to the maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def processes(root):
    """`root` and all its descendants."""
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            todo += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            pass
    return found


def status_bytes(pid, key):
    """A `kB` line of /proc/PID/status: VmRSS, VmHWM."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * KiB
    return 0


class Server:
    """A server process, ended by its own id. `url` is the destination."""

    def __init__(self, command, url=None, cwd=None):
        self.log = open(WORK / "tmp" / "server.log", "ab")
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, cwd=cwd, stderr=self.log,
            stdout=self.log if url else subprocess.PIPE, start_new_session=True)
        self.url = url or self.process.stdout.readline().decode().split()[-1].rstrip("/")
        if url:
            self.await_port()

    def await_port(self):
        host, port = self.url.split("//")[1].split(":")
        for _ in range(200):
            try:
                return socket.create_connection((host, int(port)), 1).close()
            except OSError:
                time.sleep(0.02)
        raise SystemExit(f"{self.process.args[0]} does not listen on {self.url}")

    def cpu(self):
        """CPU time of all its processes in seconds."""
        ticks = 0
        for pid in processes(self.process.pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def peak(self):
        return sum(status_bytes(pid, "VmHWM") for pid in processes(self.process.pid))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def hole(certificate=None):
    """Reads every body and discards it in the kernel; uses TLS if there is a `certificate` and its key."""
    port = free_port()
    if certificate:
        server = Server([WORK / "bin" / "hole", port, *certificate], f"https://127.0.0.1:{port}")
        server.certificate = certificate[0]
        return server
    return Server([WORK / "bin" / "hole", port], f"http://127.0.0.1:{port}")


def certificate():
    """Creates a certificate for 127.0.0.1 and its key, in files."""
    files = WORK / "tmp" / "cert.pem", WORK / "tmp" / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
         "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", files[1], "-out", files[0]],
        check=True, stderr=subprocess.DEVNULL)
    return files


def slowlink(target, rtt_ms, mbit, each=0):
    """`each`: Mbit/s of one connection; 0: no limit."""
    port = free_port()
    return Server(
        [WORK / "bin" / "slowlink", "-l", port, "-t", target.split("//")[1], "-d", rtt_ms / 2, "-u", mbit, "-D", mbit, "-c", each],
        f"http://127.0.0.1:{port}")


def nginx(folder):
    port, run = free_port(), pathlib.Path(tempfile.mkdtemp(dir=WORK / "tmp"))
    # Bodies go to a file on the same tmpfs, so that nginx renames instead of copying.
    body = folder.with_name(folder.name + "-bodies")
    for sub in (folder, body):
        sub.mkdir(exist_ok=True)
        sub.chmod(0o777)  # if root starts nginx, its workers run as another user
    text = (HERE / "nginx.conf.in").read_text()
    for key, value in {"PORT": port, "ROOT": folder, "BODY": body}.items():
        text = text.replace(f"@{key}@", str(value))
    (run / "nginx.conf").write_text(text)
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    return Server([binary, "-p", run, "-c", run / "nginx.conf", "-g", "daemon off;"], f"http://127.0.0.1:{port}")


def serve(folder):
    folder.mkdir(exist_ok=True)
    return Server([FULLBORE, "serve", folder, "--listen", "127.0.0.1:0"])


def counters(url, path="/_stats"):
    """Returns the counters of hole.c as numbers."""
    # The certificate is self-signed and made for this run.
    trust = ssl._create_unverified_context() if url.startswith("https") else None
    with urllib.request.urlopen(url + path, timeout=20, context=trust) as answer:
        return {k: int(v) for k, v in (word.split("=") for word in answer.read().decode().split())}


S3_KEYS = dict(AWS_ACCESS_KEY_ID="AKIABENCH", AWS_SECRET_ACCESS_KEY="bench", AWS_REGION="us-east-1")


def measure(label, command, size, files=1, stats=None, server=None, limit=900):
    """Runs one client and returns its cost. `stats`: the hole server to query; `server`: a process whose CPU time is
    added."""
    tmp = pathlib.Path(tempfile.mkdtemp(dir=WORK / "tmp"))
    temporary, report = tmp / "temporary", tmp / "report.json"
    temporary.mkdir()
    environment = dict(
        os.environ, TMPDIR=str(temporary), FULLBORE_JOURNAL=str(tmp / "journal.sqlite"), RCLONE_CONFIG="/dev/null",
        **S3_KEYS, AWS_CONFIG_FILE=str(WORK / "tmp" / "aws.cfg"), AWS_SHARED_CREDENTIALS_FILE=str(WORK / "tmp" / "none"))
    environment.pop("AWS_CA_BUNDLE", None)  # rclone does not start with it
    if stats:
        counters(stats, "/_reset")
    server_cpu = server.cpu() if server else 0
    with open(WORK / "tmp" / "client.log", "ab") as log:
        child = subprocess.Popen(
            [str(c) for c in (WORK / "bin" / "timed", report, *command)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True)
    stop, seen = threading.Event(), {"temporary": 0}

    def watch():  # samples rarely, because sampling uses the two cores that are measured
        while not stop.wait(0.25):
            seen["temporary"] = max(seen["temporary"], temporary_bytes(child.pid, temporary))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        child.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # the client has its own session, so nothing else is killed
        child.wait()
    stop.set()
    watcher.join()
    if not report.exists():
        raise SystemExit(f"{label} did not end within {limit} s, or did not start: see {WORK / 'tmp'}")
    run = json.loads(report.read_text())
    if run["status"] != 0:
        raise SystemExit(f"{label} ended with status {run['status']}: see {WORK / 'tmp' / 'client.log'}")
    run |= {
        "client": label, "bytes": size, "files": files, "temporary": seen["temporary"],
        "journal": sum(f.stat().st_size for f in tmp.glob("journal.sqlite*")),
        "rate": size / run["wall"], "cpu_per_gb": run["cpu"] / (size / 1e9)}
    if server:
        run["server_cpu_per_gb"] = (server.cpu() - server_cpu) / (size / 1e9)
    if stats:
        count = counters(stats)
        if count["bytes"] < size:
            raise SystemExit(f"{label} sent {count['bytes']} of {size} bytes")
        requests = sum(v for k, v in count.items() if k not in ("conns", "bytes", "OPTIONS"))
        run |= {"requests_per_file": requests / files, "connections": count["conns"] - 1}
    shutil.rmtree(tmp)
    return run


def temporary_bytes(root, folder):
    """Bytes in files under $TMPDIR, and in deleted files that are still open."""
    total = sum(os.path.getsize(p) for p in folder.rglob("*") if p.is_file())
    for pid in processes(root):
        try:
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(fd)
                if target.endswith(" (deleted)") and target.startswith("/") and "/dev/shm/" not in target:
                    total += fd.stat().st_size
        except OSError:
            pass
    return total
