#!/usr/bin/env python3
"""Shows on one machine what fullbore does, and compares every byte with its source.

It starts `fullbore serve` on a free port of this machine and pushes to it three times: a gallery; its largest file with
the pushing process killed half-way; and the same file where the kernel lets the process write no more than 1 MiB.
Everything it makes is in one new folder, which is removed at the end, also after Ctrl-C.
"""

import argparse
import ctypes
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # The checkout stays as it is.
from gallery import Gallery, check_stamps

MIB = 1 << 20
WHOLE_REQUEST = 4 * MIB  # fullbore sends a file of up to this size in one request, which cannot be resumed.


@dataclass
class Run:
    """One push, as the table at the end shows it."""

    title: str
    files: int = 0
    bytes: int = 0
    seconds: float = 0
    peak_memory: int = 0
    written: int = 0
    made_temporary_files: bool = False
    compared: int = 0


class Push:
    """One push process. Its peak memory and what it wrote to disk are the kernel's numbers."""

    def __init__(self, demo, *arguments, file_limit=None):
        def limit():
            if file_limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        self.process = subprocess.Popen(
            [demo.fullbore, "push", *arguments], stdout=subprocess.PIPE, text=True, preexec_fn=limit,
            env=os.environ | {"TMPDIR": str(demo.temporary)})

    def events(self):
        """What the push reports with --json, one object a line."""
        for line in self.process.stdout:
            yield json.loads(line)

    def end(self, run):
        """Waits for the end, adds its numbers to `run`, and returns the exit status (negative: the signal)."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        run.peak_memory = max(run.peak_memory, usage.ru_maxrss * 1024)
        run.written += usage.ru_oublock * 512
        return self.process.returncode


class NewNames:
    """Whether a name has appeared in a folder, including one that is gone again (inotify)."""

    CREATE, MOVED_TO = 0x100, 0x80

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if libc.inotify_add_watch(self.descriptor, os.fsencode(folder), self.CREATE | self.MOVED_TO) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", folder)

    def any(self):
        try:
            return len(os.read(self.descriptor, 1 << 16)) > 0
        except BlockingIOError:
            return False
        finally:
            os.close(self.descriptor)


class Demo:
    def __init__(self, fullbore, folder, gallery, is_stamped):
        self.fullbore, self.folder, self.gallery, self.is_stamped = fullbore, folder, gallery, is_stamped
        self.temporary, self.received = folder / "tmp", folder / "received"
        self.temporary.mkdir()
        self.received.mkdir()
        self.files = files_to_send(gallery)
        if not self.files:
            sys.exit(f"demo: there is no file to send in {gallery}")
        self.largest = max(self.files, key=lambda path: path.stat().st_size)
        self.size = self.largest.stat().st_size

    def run(self):
        self.server = subprocess.Popen(
            [self.fullbore, "serve", self.received, "--listen", "127.0.0.1:0", "--quiet"],
            stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().strip()
        if not self.url.startswith("http://"):
            sys.exit("demo: the server did not start")
        say(f"\nServing {self.received} at {self.url}")
        return [self.push_gallery(), self.kill_and_resume() if self.size > WHOLE_REQUEST else self.push_twice(),
                self.push_without_disk()]

    def push_gallery(self):
        say(f"\n-- The gallery --\nfullbore push {shlex.quote(str(self.gallery))}/ {self.url}gallery/")
        run = Run("gallery")
        self.push(run, f"{self.gallery}/", "gallery")
        self.compare_gallery(run, "gallery")
        return run

    def push_twice(self):
        say(f"\n-- Pushed twice --\nThe largest file has {self.size:,} bytes. It goes in one request, so that nothing "
            f"can be resumed after a kill.\nfullbore push {shlex.quote(str(self.gallery))}/ {self.url}twice/")
        run = Run("pushed twice")
        self.push(run, f"{self.gallery}/", "twice")
        say("The same command again:")
        again = self.push(run, f"{self.gallery}/", "twice")
        if again["bytes_sent"]:
            sys.exit("demo: the second push sent what was there")
        say("It sent nothing: everything is there.")
        self.compare_gallery(run, "twice")
        return run

    def kill_and_resume(self):
        rate = max(self.size // 4, 512 << 10)  # Slow enough to be killed half-way.
        say(f"\n-- Killed half-way --\nfullbore push --bwlimit {rate} {shlex.quote(str(self.largest))} {self.url}resumed/")
        run, names, began = Run("killed and resumed", 1, self.size), NewNames(self.temporary), time.monotonic()
        arguments = self.arguments(self.largest, "resumed")
        first, killed_at = Push(self, *arguments, "--bwlimit", str(rate)), None
        for event in first.events():
            if event["event"] == "progress" and event["sent"] >= self.size // 2 and killed_at is None:
                killed_at = event["sent"]
                first.process.kill()
        if first.end(run) != -signal.SIGKILL:
            sys.exit("demo: the push that was to be killed ended by itself")
        say(f"Killed with SIGKILL when {killed_at:,} bytes had gone out.\nThe same command again:")
        again = Push(self, *arguments)
        resumed_from = [event["resumed_from"] for event in again.events() if event["event"] == "done"]
        require(again.end(run))
        if not resumed_from or not resumed_from[0]:
            sys.exit("demo: the second push did not go on where the first was killed")
        say(f"It went on at byte {resumed_from[0]:,}.")
        run.seconds, run.made_temporary_files = time.monotonic() - began, names.any()
        self.compare_largest(run, "resumed")
        return run

    def push_without_disk(self):
        say("\n-- No copy on disk --\nThe same file again, where the kernel ends a process that writes more than 1 MiB into "
            f"any file (SIGXFSZ):\n(ulimit -f 1024; fullbore push {shlex.quote(str(self.largest))} {self.url}limited/)")
        run = Run("files limited to 1 MiB", 1, self.size)
        self.push(run, self.largest, "limited", file_limit=MIB)
        self.compare_largest(run, "limited")
        return run

    def arguments(self, source, name):
        return [source, f"{self.url}{name}/", "--json", "--journal", self.folder / f"{name}.sqlite"]

    def push(self, run, source, name, file_limit=None):
        """Runs one push to its end, and returns the summary that it reports."""
        names, began, summary = NewNames(self.temporary), time.monotonic(), {}
        push = Push(self, *self.arguments(source, name), file_limit=file_limit)
        for event in push.events():
            if event["event"] == "failed":
                say(json.dumps(event))
            if event["event"] == "summary":
                summary = event
        require(push.end(run))
        run.seconds += time.monotonic() - began
        run.made_temporary_files |= names.any()
        return summary

    def compare_gallery(self, run, name):
        for path in self.files:
            relative = path.relative_to(self.gallery)
            run.files, run.bytes = run.files + 1, run.bytes + path.stat().st_size
            run.compared += self.compare(path, self.received / name / relative)
        say(f"Compared {run.compared:,} bytes of {run.files:,} files: all equal.")
        shutil.rmtree(self.received / name)

    def compare_largest(self, run, name):
        run.compared = self.compare(self.largest, self.received / name / self.largest.name)
        say(f"Compared {run.compared:,} bytes: all equal.")
        shutil.rmtree(self.received / name)

    def compare(self, source, arrived):
        """The number of bytes, which are the same in both files. Ends the demo at the first that differs."""
        if self.is_stamped and source == self.largest:
            check_stamps(arrived)
        offset = 0
        with open(source, "rb") as left, open(arrived, "rb") as right:
            while True:
                ours, theirs = left.read(MIB), right.read(MIB)
                if ours != theirs:
                    sys.exit(f"demo: {source} and {arrived} differ in the MiB at byte {offset}")
                if not ours:
                    return offset
                offset += len(ours)

    def stop(self):
        server = getattr(self, "server", None)
        if server:
            server.terminate()
            server.wait()


def files_to_send(folder):
    """What a push sends of a folder: regular files and links to them, without names that begin with a dot."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if not name.startswith(".") and Path(parent, name).is_file()]
    return found


def require(status):
    if status == -signal.SIGXFSZ:
        sys.exit("demo: the push wrote more than it may into a file: SIGXFSZ ended it")
    if status:
        sys.exit(f"demo: the push ended with {status}")


def say(text):
    print(text, flush=True)


def table(runs):
    rows = [
        ["", *(run.title for run in runs)],
        ["files", *(f"{run.files:,}" for run in runs)],
        ["bytes", *(f"{run.bytes:,}" for run in runs)],
        ["seconds", *(f"{run.seconds:.2f}" for run in runs)],
        ["MiB a second", *(f"{run.bytes / MIB / max(run.seconds, 0.001):,.0f}" for run in runs)],
        ["peak memory of the pushing process, MiB", *(f"{run.peak_memory / MIB:.1f}" for run in runs)],
        ["temporary files", *("made" if run.made_temporary_files else "none" for run in runs)],
        ["written to disk, journal included, KiB", *(f"{run.written >> 10:,}" for run in runs)],
        ["bytes compared, equal", *("all" if run.compared == run.bytes else f"{run.compared:,}" for run in runs)],
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("   ".join(cell.rjust(width) if index else cell.ljust(width)
                                for index, (cell, width) in enumerate(zip(row, widths))) for row in rows)


def place_with_room(wanted, given):
    """The first folder that has room for what is received."""
    places = [given] if given else [os.environ.get("TMPDIR"), "/var/tmp", "/tmp"]
    found = []
    for place in filter(None, places):
        try:
            free = shutil.disk_usage(place).free
        except OSError as error:
            found.append(str(error))
            continue
        if free >= wanted and os.access(place, os.W_OK):
            return place
        found.append(f"{place} has {free // MIB:,} MiB")
    sys.exit(f"demo: receiving needs {wanted // MIB:,} MiB of free space; {', '.join(found)}. "
             "Free some, or give --in FOLDER or a smaller --video-size")


def main():
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="your own pictures, which are only read; else a gallery is made")
    parser.add_argument("--in", dest="place", metavar="FOLDER", help="where to receive; $TMPDIR, /var/tmp or /tmp if not given")
    parser.add_argument("--video-size", type=int, default=1024, metavar="MIB", help="of the film in the made gallery; 1024")
    parser.add_argument("--fullbore", required=True, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # A file's name need not be UTF-8.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = options.folder and options.folder.absolute()
    wanted = (sum(path.stat().st_size for path in files_to_send(given)) if given
              else options.video_size * MIB + 2 * Gallery.EXPECTED_IMAGES)
    folder = Path(tempfile.mkdtemp(prefix="fullbore-demo-", dir=place_with_room(wanted + 64 * MIB, options.place)))
    demo = None
    try:
        if not given:
            gallery = Gallery(folder / "gallery", options.video_size * MIB)
            say(f"Made a gallery: {gallery.images} images, and a film of {options.video_size:,} MiB that takes "
                f"{gallery.film_on_disk >> 10:,} KiB of disk: it is empty but for a stamp at every MiB.")
        demo = Demo(options.fullbore.absolute(), folder, given or folder / "gallery", is_stamped=not given)
        runs = demo.run()
        say(f"\n{table(runs)}\n")
        whole = all(run.compared == run.bytes and not run.made_temporary_files for run in runs)
        say("Everything arrived, and every byte was compared." if whole
            else "Not everything is as it should be: see the table.")
        return 0 if whole else 1
    except KeyboardInterrupt:
        return 130
    finally:
        if demo:
            demo.stop()
        shutil.rmtree(folder)
        say(f"Removed {folder}.")


if __name__ == "__main__":
    sys.exit(main())
