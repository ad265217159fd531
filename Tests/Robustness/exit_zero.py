#!/usr/bin/env python3
"""Checks that exit 0 means success. Random folders are pushed to random servers with random options and faults. After each
run the destination folder is compared directly with the source, to check the exit status:

- After exit 0, every file that the options select is there with the same bytes.
- A run without a fault ends with exit 0.
- After the faults have ended, the same command ends with exit 0, and every file is there.
- No program crashes, and no published file is a part of a file or a mixture of two.

    exit_zero.py SECONDS [SEED]       runs the seeds from SEED on until the time is over
    exit_zero.py 0 SEED               runs only this seed and prints all output
"""
import fnmatch, os, random, signal, sys, time

from proxy import FAULTS, FaultyProxy
from support import *

PLAIN = ["a.jpg", "IMG_0001.JPG", "film.mov", "notes.txt", "x", "with space.png", "plus+plus.jpg", "per%20cent.jpg",
         "hash#hash.jpg", "question?.jpg", "semi;colon.jpg", "amp&er.jpg", "quote'quote.jpg", "ünï.jpg", "u\u0308.jpg",
         "日本語.heic", "😀.mp4", "a" * 120 + ".jpg", "[brackets].jpg", "{braces}.jpg", "~tilde", "comma,comma", "eq=al", "dots..jpg"]
HARD = [b"back\\slash.jpg", b'double"quote.jpg', b"colon:colon.jpg", b"star*.jpg", b"pipe|.jpg", b"less<.jpg",
        b"not-utf8-\xff\xfe.jpg", b"-dash.jpg", b"trailing space ", b"new\nline.jpg", b"tab\t.jpg"]
SIZES = [0, 1, 100, 4096, 65536, 70001, 300_000, 1 << 20, (4 << 20) + 1, 9_000_000]


class Tree:
    """A random folder, and the files of it that are expected at the destination."""

    def __init__(self, root, r, hard):
        self.files = {}  # relative path in bytes -> content's path
        root.mkdir()
        names = [os.fsencode(n) for n in PLAIN] + (HARD if hard else [])
        folders = [b""]
        for _ in range(r.randrange(4)):
            folders.append(r.choice(folders) + r.choice([b"DCIM", b"2024", b"some where", "größe".encode(), b"100CANON"]) + b"/")
        for _ in range(r.choice([1, 3, 12, 40])):
            relative = r.choice(folders) + (b"." if r.random() < 0.05 else b"") + r.choice(names)
            path = os.path.join(os.fsencode(root), relative)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.lexists(path):
                continue
            with open(path, "wb") as file:
                file.write(r.randbytes(r.choice(SIZES)))
            self.files[relative] = path
        if self.files and r.random() < 0.3:  # Links to files are followed.
            link = os.path.join(os.fsencode(root), b"link.jpg")
            target = r.choice(list(self.files.values()))
            if not os.path.lexists(link):
                os.symlink(target, link)
                self.files[b"link.jpg"] = target
        if r.random() < 0.2:  # Anything that is not a file is left out, and so are empty folders and links to folders.
            os.mkfifo(os.path.join(os.fsencode(root), b"a-pipe"))
            os.mkdir(os.path.join(os.fsencode(root), b"empty"))
            os.symlink("/usr/share", os.path.join(os.fsencode(root), b"linked-folder"))

    def expected(self, options):
        def chosen(relative):
            parts = relative.split(b"/")
            if not options.hidden and any(part.startswith(b".") for part in parts):
                return False
            if options.include and not fnmatch.fnmatchcase(os.fsdecode(parts[-1]), options.include):
                return False
            return not (options.exclude and fnmatch.fnmatchcase(os.fsdecode(parts[-1]), options.exclude))
        return {relative: path for relative, path in self.files.items() if chosen(relative)}


class Options:
    def __init__(self, r, protocol):
        self.hidden = r.random() < 0.2
        self.include = r.choice([None] * 8 + ["*.jpg"])
        self.exclude = r.choice([None] * 8 + ["*.mov"])
        self.arguments = []
        if self.hidden:
            self.arguments.append("--hidden")
        if self.include:
            self.arguments += ["--include", self.include]
        if self.exclude:
            self.arguments += ["--exclude", self.exclude]
        self.arguments += r.choice([[], [], ["-j", "1"], ["-j", "4"]])
        self.arguments += r.choice([[], [], [], ["--part-size", "1M"]])
        self.arguments += r.choice([[], [], [], ["--verify"]]) if protocol != "form+" else []
        self.arguments += r.choice([[], [], ["--overwrite"]])
        if protocol == "tus+":
            self.arguments += r.choice([[], [], ["--checksum", "sha1"]])
        self.retries = ["--retries", str(r.choice([1, 3, 8])), "--timeout", "2s", "--finish-timeout", "6s"]


SERVERS = {"": "ours", "tus+": "ours", "put+": "ours", "resumable+": "ours", "form+": "ours", "dav+": "nginx", "dav+2": "rclone", "s3": "rclone"}


def start(kind, protocol, store, log):
    if kind == "ours":
        return serve(store, log)
    if protocol == "s3":
        (store / "media").mkdir()
        return rclone_s3(store, log)
    return nginx(store, log) if kind == "nginx" else rclone_webdav(store, log)


def differences(expected, arrived, protocol):
    """Names the files of `expected` that are not at the destination with the same bytes."""
    wrong = []
    for relative, path in expected.items():
        there = os.path.join(os.fsencode(arrived), os.path.basename(relative) if protocol == "form+" else relative)
        if not os.path.isfile(there):
            wrong.append(f"{os.fsdecode(relative)!r} is not there")
        elif not same_bytes(path, there):
            try:
                found = os.path.getsize(there)
            except FileNotFoundError:
                found = "by now no longer there, and had"
            wrong.append(f"{os.fsdecode(relative)!r} has {found} other bytes, {os.path.getsize(path)} wanted")
    return wrong


def play(seed, says=lambda text: None):
    """Runs one round. Raises `Failure`. Returns a description of the round."""
    r = random.Random(seed)
    protocol = r.choice(list(SERVERS))
    kind = SERVERS[protocol]
    faults = r.choice(["none", "none", "proxy", "proxy", "kill-client", "kill-client-resume", "kill-server", "lost-file", "two-of-one-name", "changing"])
    story = f"seed {seed}: {protocol or 'found'} to {kind}, fault {faults}"
    with scratch() as folder, contextlib.ExitStack() as stack:
        store, log, source = folder / "store", folder / "log.txt", folder / "source"
        store.mkdir()
        tree = Tree(source, r, hard=kind == "ours" and protocol != "form+")
        options = Options(r, protocol)
        if protocol == "form+":  # Forms contain only the file name, without folders.
            names = {}
            for relative, path in list(tree.files.items()):
                if os.path.basename(relative) in names or b"link" in relative:
                    os.unlink(os.path.join(os.fsencode(source), relative))
                    del tree.files[relative]
                names[os.path.basename(relative)] = path
        expected = tree.expected(options)
        server = start(kind, protocol, store, log)
        if server is None:
            return f"{story}: skipped, no rclone that serves S3"
        stack.enter_context(server)
        played = r.sample(FAULTS, r.randrange(1, 4)) if faults == "proxy" else []
        if played:
            story += f" {played}"
        proxy = FaultyProxy(server.port, seed, played, limit=r.choice([3, 20, 10_000]))
        stack.callback(proxy.close)
        scheme = protocol.rstrip("2")
        if protocol == "s3":
            where = ["s3://media/in/", "--endpoint", f"http://127.0.0.1:{proxy.port}", "--addressing", "path"]
            arrived = store / "media/in"
        elif protocol == "form+":
            where, arrived = [f"form+http://127.0.0.1:{proxy.port}/"], store
        else:
            where, arrived = [f"{scheme}http://127.0.0.1:{proxy.port}/in/"], store / "in"
        client = Client(folder / "home")
        sources = [f"{source}/"]
        if faults == "two-of-one-name" and expected:
            twin = folder / "twin"
            relative = r.choice(sorted(expected))
            path = os.path.join(os.fsencode(twin), relative)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"another camera's file " * r.randrange(1, 500))
            sources.append(f"{twin}/")
        push = ["push", "--quiet", *options.arguments, *options.retries, *server.credentials, *sources, *where]
        says(f"{story}\n{' '.join(map(str, push))}\n{len(expected)} of {len(tree.files)} files expected")

        def judge(run, status, text, must_succeed):
            says(f"{run}: exit {status}\n{text}")
            if status not in (0, 1, 2, 3, 130):
                raise Failure(f"{story}: {run} ended with {status}: {text[-3000:]}")
            if server.process.poll() is not None:
                raise Failure(f"{story}: the server ended with {server.process.poll()}")
            wrong = differences(expected, arrived, protocol)
            if status == 0 and wrong:
                raise Failure(f"{story}: {run} exit 0, and {wrong[:3]}: {text[-2000:]}")
            if must_succeed and status != 0:
                raise Failure(f"{story}: {run} exit {status} without a fault: {text[-3000:]}")
            if kind == "ours":  # Every name that exists has a complete file.
                for line in wrong:
                    if "other bytes" in line:
                        raise Failure(f"{story}: {run}: {line}")

        # A tree without files, or options that exclude all files: the push reports that and fails.
        nothing = not expected
        if faults in ("kill-client", "kill-client-resume"):
            client.start(*push)
            time.sleep(r.uniform(0.005, 0.4))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.process.pid, signal.SIGKILL)
            client.process.wait()
            # A push that was killed before it sent anything may be unknown. The journal knows it from its first byte
            # on.
            if faults == "kill-client-resume" and proxy.has_received:
                judge("resume", *client.run("resume", "--quiet", *options.retries, *server.credentials)[:2], must_succeed=False)
        elif faults == "kill-server":
            client.start(*push)
            time.sleep(r.uniform(0.005, 0.3))
            server.kill()
            time.sleep(r.uniform(0, 1))
            server.start()
            status, text, _ = client.wait(300)
            judge("the server was killed", status, text, must_succeed=False)
        elif faults == "changing" and expected:
            path = r.choice(sorted(expected.values()))
            client.start(*push)
            time.sleep(r.uniform(0.005, 0.2))
            with open(path, "ab") as file:
                file.write(b"more")
            client.wait(300)  # Either version may have arrived; the next run must send the last one.
            push.insert(1, "--overwrite")
        else:
            status, text, _ = client.run(*push, limit=300)
            if faults == "two-of-one-name" and expected:
                if status == 0:
                    raise Failure(f"{story}: two different files of one name, exit 0")
                return story
            judge("the first run", status, text, must_succeed=faults in ("none", "lost-file") and not nothing)
        proxy.heal()
        # rclone caches folder listings for minutes, and does not see that another program removes files.
        if faults == "lost-file" and expected and protocol != "form+" and kind != "rclone":
            relative = r.choice(sorted(expected))
            there = os.path.join(os.fsencode(arrived), relative)
            r.choice([os.unlink, lambda path: os.truncate(path, os.path.getsize(path) // 2) if os.path.getsize(path) else os.unlink(path)])(there)
            push[1:1] = ["--check", "--overwrite"]
        status, text, _ = client.run(*push, limit=300)
        judge("the last run", status, text, must_succeed=not nothing and faults != "two-of-one-name")
        left = [str(path) for path in (folder / "home/tmp").rglob("*")]
        if left:
            raise Failure(f"{story}: temporary files: {left[:5]}")
        return story


def main(seconds, first):
    if seconds == 0:
        return print(play(first, print))
    print(f"seeds from {first} on", flush=True)
    results, seed, end = Results("exit_zero"), first, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            story = play(seed)
            results.add("skipped" if "skipped" in story else "passed", f"seed {seed}", "")
        except Failure as failure:
            results.add("failed", f"seed {seed}", f"{failure}\n(exit_zero.py 0 {seed} plays it again)")
        seed += 1
    results.finish()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()))
