"""What the browser tests use: the sharing server, a link that breaks, made-up pictures, and the page as a person sees it."""
import base64, contextlib, hashlib, os, pathlib, random, re, signal, socket, struct, sys, threading, time, zlib

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Robustness"))
from support import (FULLBORE, GiB, KiB, MiB, Failure, Process, Results, free_port, same_bytes, scratch,  # noqa: F401
                     sparse_film)

CODE = "k7mq-4w9x-p3tz"
CHROMIUM = os.environ.get("FULLBORE_CHROMIUM", "/usr/bin/chromium")
# A name that is not loopback: the page has no secure context, as on a phone that uses the address of the computer.
HOST = "phone.test"
# The name of another server in the network, with pages that nobody should trust.
STRANGER = "stranger.test"
ARGUMENTS = ["--no-sandbox", f"--host-resolver-rules=MAP {HOST} 127.0.0.1, MAP {STRANGER} 127.0.0.1", "--disable-dev-shm-usage"]
PHONE = dict(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, device_scale_factor=2)
DESKTOP = dict(viewport={"width": 1280, "height": 800})


class Skipped(Exception):
    """A check cannot run here; the text says why."""


def require(fact, text):
    if not fact:
        raise Failure(text)


def eventually(fact, text, seconds=20):
    """Waits until `fact()` is true, and returns its value."""
    deadline = time.monotonic() + seconds
    while not (value := fact()):
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {text() if callable(text) else text}")
        time.sleep(0.05)
    return value


def share(folder, *options, code=CODE):
    """A server that shares `folder`. Its code stays the same when it is started again."""
    folder.mkdir(exist_ok=True)
    port, token = free_port(), folder.parent / f"code-{folder.name}"
    token.write_text(code)
    token.chmod(0o600)
    return Process([FULLBORE, "serve", folder, "--share", "--listen", f"127.0.0.1:{port}", "--token-file", token, *options],
                   port, folder.parent / f"log-{folder.name}.txt")


class Link:
    """A link to a port of this machine that can be slow, break connections at random, be away, and be silent."""

    def __init__(self, target, *, bytes_per_second=None, cut_mean=None, seed=1):
        self.target, self.rate, self.cut_mean, self.random = target, bytes_per_second, cut_mean, random.Random(seed)
        self.sent, self.cuts, self.open, self.is_away, self.is_silent = 0, 0, set(), False, False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.is_away:
                    raise OSError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.open |= {client, server}
            limit = self.random.expovariate(1 / self.cut_mean) if self.cut_mean else None
            threading.Thread(target=self.pump, args=(client, server, True, limit), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False, None), daemon=True).start()

    def pump(self, source, sink, is_up, limit):
        moved = 0
        try:
            while data := source.recv(1 << 16 if self.rate else 1 << 20):
                moved += len(data)
                if is_up:
                    if self.rate:
                        time.sleep(len(data) / self.rate)
                    if limit is not None and moved > limit:
                        self.cuts += 1
                        break
                    self.sent += len(data)
                while self.is_silent:
                    time.sleep(0.05)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            self.open.discard(end)
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.cut_all()

    def wait_until_quiet(self):
        """Returns when nothing has been sent for one second."""
        before = -1
        while before != self.sent:
            before = self.sent
            time.sleep(1)

    def cut_all(self):
        for end in list(self.open):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def picture(path, size, seed):
    """A PNG picture of its own color, with random bytes after its end up to `size` bytes."""
    r = random.Random(seed)
    red, green, blue = (r.randrange(60, 240) for _ in range(3))
    rows = b"".join(b"\0" + b"".join(bytes(((red + x) % 256, (green + y) % 256, blue)) for x in range(64)) for y in range(64))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
           + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png + r.randbytes(max(0, size - len(png))))
    return path


def small_jpeg(page, width=48, height=32):
    """A picture that is dark at its left, encoded by the browser."""
    return base64.b64decode(page.evaluate("""async ([width, height]) => {
      const canvas = new OffscreenCanvas(width, height);
      canvas.getContext("2d").fillRect(0, 0, width / 2, height);
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg" })).arrayBuffer());
      return btoa(String.fromCharCode(...bytes));
    }""", [width, height]))


def photo_beginning(preview):
    """The beginning of a JPEG whose EXIF metadata turns it by 90°; `preview`: a JPEG, or None."""
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 26 if preview else 0)
    if preview:
        tiff += struct.pack(">HHHIIHHIII", 2, 0x0201, 4, 1, 56, 0x0202, 4, 1, len(preview), 0) + preview
    block = b"Exif\0\0" + tiff
    return b"\xff\xd8\xff\xe1" + struct.pack(">H", len(block) + 2) + block


def photo(path, jpeg, with_preview, rest=None):
    """A JPEG above 1 MiB. Its EXIF metadata turns it by 90°, and may have a preview. `rest`: the picture itself, if it is another."""
    path.write_bytes(photo_beginning(jpeg if with_preview else None) + (rest or jpeg)[2:] + os.urandom(MiB))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_same(expected, folder):
    """`expected`: paths of the sent files, by their names in `folder`."""
    for name, path in expected.items():
        require((folder / name).is_file(), f"{name} has not arrived")
        require(sha256(path) == sha256(folder / name), f"{name} arrived with other bytes")
    extra = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and ".fullbore" not in p.parts} - set(expected)
    require(not extra, f"files that nobody sent: {sorted(extra)[:5]}")


class Visit:
    """The page in a browser."""

    def __init__(self, browser, port, *, code=CODE, path="/", host=HOST, context=None, **options):
        self.context = context or browser.new_context(**{"locale": "en-US", **(options or DESKTOP)})
        self.page = self.context.new_page()
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: "Content Security Policy" in m.text and self.errors.append(m.text))
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.goto(f"http://{host}:{port}{path}" + (f"#{code}" if code else ""))
        if code == CODE:
            self.wait_for(":is(#send, #folder):not([hidden])")

    def wait_for(self, selector, seconds=20):
        self.page.wait_for_selector(selector, timeout=seconds * 1000)

    def choose(self, *paths, selector="#files-input"):
        self.page.set_input_files(selector, [str(path) for path in paths])

    def text(self, selector):
        """The element's text, without the spaces that do not break."""
        return self.page.evaluate("s => document.querySelector(s)?.innerText ?? ''", selector).replace("\xa0", " ")

    def until(self, selector, pattern, seconds=30):
        """Waits until the text of the element matches; returns the text."""
        def found():
            text = self.text(selector)
            return text if re.search(pattern, text) else None
        return eventually(found, lambda: f"{pattern!r} in {selector}, which says {self.text(selector)!r}", seconds)

    def finish(self, count, seconds=60):
        """Waits until `count` files are finished."""
        return self.until("#total-count", rf"^Finished: {count}\b", seconds)

    def open_finished(self):
        if self.page.get_attribute("#show-finished", "aria-expanded") != "true":
            self.page.click("#show-finished")
        self.wait_for("#finished .row")

    def count_requests(self):
        """The requests for uploads that the page makes from now on, in a list that grows."""
        made = []
        self.page.on("request", lambda r: r.method in ("HEAD", "POST", "PATCH") and made.append(f"{r.method} {r.url}"))
        return made

    @contextlib.contextmanager
    def frozen(self):
        """Stops the process of the page. `Page.setWebLifecycleState` does not freeze pages that playwright drives."""
        session = self.context.browser.new_browser_cdp_session()

        def used():
            processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
            return {process["id"]: process["cpuTime"] for process in processes if process["type"] == "renderer"}
        before = used()
        self.page.evaluate("() => { for (const end = performance.now() + 500; performance.now() < end; ); }")
        process, _ = max(used().items(), key=lambda item: item[1] - before.get(item[0], 0))
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    def screenshot(self, name):
        if folder := os.environ.get("FULLBORE_SCREENSHOTS"):
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{folder}/{name}.png")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        errors = list(self.errors)
        self.context.close()
        if kind is None:
            require(not errors, f"errors in the page: {errors[:3]}")
