#!/usr/bin/env python3
"""Compares the page of `fullbore serve --share` with copyparty's uploader, in the same Chromium and in interleaved rounds.

    FULLBORE=$(scripts/build) .venv/bin/python Benchmarks/share/share.py [--rounds N] [--links slow,loopback] [--works film,photos]

`film` is one large file, `photos` are many. `slow` is a link of 50 Mbit/s with 10 ms in each direction. --film and --photos
change the amounts. Files are received in memory (/dev/shm). The page has no secure context, as on a phone that opens the
address of a computer; --host localhost gives it one.
"""
import argparse, pathlib, shutil, statistics, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests/Browser"), str(ROOT / "Tests/Robustness"), str(ROOT / "Benchmarks")]
from playwright.sync_api import sync_playwright  # noqa: E402

import harness, support  # noqa: E402
from heavy import renderers  # noqa: E402
from visit import *  # noqa: E402, F403

TICK = os.sysconf("SC_CLK_TCK")
# By measure: its unit, and by link what the issue asks for: at most so many seconds, or so much of copyparty's.
GOALS = {
    "first byte": ("s", {"slow": "0.3 s", "loopback": "0.3 s"}),
    "whole time": ("s", {"slow": 0.9, "loopback": 0.7}),
    "tab memory": ("MiB", {"slow": 0.5, "loopback": 0.5}),
    "server CPU": ("s", {"slow": 0.5, "loopback": 0.5}),
}


def fullbore(folder):
    return share(folder / "in"), f"/#{CODE}", "() => !document.getElementById('send').hidden", "#files-input"


def copyparty(folder):
    """With its own settings, except that no confirmation is asked for. Without a database, it does least."""
    port, home = free_port(), folder / "home"
    (folder / "in").mkdir()
    home.mkdir()
    command = [sys.executable, "-m", "copyparty", "-i", "127.0.0.1", "-p", port, "--http-only", "-q", "--wram", "-v",
               f"{folder / 'in'}::rw"]
    server = support.Process(command, port, folder / "log-copyparty.txt", seconds=30,
                             environment={"HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(home)})
    return server, "/", "() => window.up2k && window.up2k.uc", "input[type=file][id^=file]"


def cpu(server):
    """Seconds of the server's processes, and of those that have ended."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == server.process.pid:  # The session, which the server leads.
                ticks += sum(map(int, fields[11:15]))
    return ticks / TICK


def tab_memory():
    """Private memory of the largest page, in MiB."""
    sizes = [0]
    for process in renderers():
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
            sizes.append(sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+)", text, re.M)) / 1024)
    return max(sizes)


class Watch:
    """Watches the server's folder, and the tab's memory, from another thread until all files are complete. Notes when the
    first bytes were stored, and the end."""

    def __init__(self, folder, sizes):
        self.folder, self.sizes, self.peak = folder, dict(sizes), 0
        self.first = self.end = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        measured = 0
        while self.sizes:
            now = time.time()
            with contextlib.suppress(FileNotFoundError):
                if self.first is None and self.has_bytes():
                    self.first = time.time()
            for name in list(self.sizes):
                with contextlib.suppress(FileNotFoundError):
                    if (self.folder / name).stat().st_size != self.sizes[name]:
                        break
                    del self.sizes[name]
                    continue
                break  # Files come nearly in order.
            if now > measured + 0.5:
                self.peak, measured = max(self.peak, tab_memory()), now
            time.sleep(0.01 if self.first is None else 0.05)
        self.end = time.time()
        self.peak = max(self.peak, tab_memory())

    def has_bytes(self):
        """Whether a byte of a file is stored, under whichever name. The servers' own records are smaller."""
        return any(path.stat().st_blocks * 512 > 8 * KiB for path in self.folder.rglob("*") if path.is_file())


def open_page(stack, make_server, folder, link, host, prepare):
    """Starts a server, perhaps behind the slow link, and opens its page in a browser until `stack` ends.

    Returns the server, the page, and the selector of the element that takes files. `prepare` gets the page before it is loaded.
    """
    server, path, is_ready, selector = make_server(folder)
    port = stack.enter_context(server).port
    if link == "slow":
        port = stack.enter_context(support.slowlink(port, folder / "link.txt", mbit=50, delay_ms=10)).port
    browser = stack.enter_context(sync_playwright()).chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    stack.callback(browser.close)
    page = browser.new_context(**DESKTOP).new_page()
    prepare(page)
    page.goto(f"http://{host}:{port}{path}")
    page.wait_for_function(is_ready)
    time.sleep(2)  # The page loads what it needs for later.
    return server, page, selector


def send(page, selector, folder, paths, limit):
    """Gives the files to the page, and returns the `Watch` once all of them are in the server's folder."""
    watch = Watch(folder / "in", [(path.name, path.stat().st_size) for path in paths])
    page.locator(selector).first.set_input_files([str(path) for path in paths])
    deadline = time.monotonic() + limit
    while watch.end is None:
        require(time.monotonic() < deadline, f"not complete after {limit} s, missing: {list(watch.sizes)[:3]}")
        page.wait_for_timeout(100)
    return watch


def measure(make_server, paths, link, host, limit):
    """One run: what the program took for each of `GOALS`."""
    with tempfile.TemporaryDirectory(prefix="fullbore-share-", dir="/dev/shm") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)

        def prepare(page):
            # Milliseconds since 1970 when the page gets the files.
            page.add_init_script("addEventListener('change', () => (window.droppedAt ??= Date.now()), true)")
            page.add_init_script("localStorage.setItem('ask_up', '0')")

        server, page, selector = open_page(stack, make_server, folder, link, host, prepare)
        before = cpu(server)
        watch = send(page, selector, folder, paths, limit)
        begin = page.evaluate("droppedAt") / 1000
        result = {"first byte": watch.first - begin, "whole time": watch.end - begin, "tab memory": watch.peak, "server CPU": cpu(server) - before}
        wrong = [path.name for path in paths if not same_bytes(path, folder / "in" / path.name)]
        require(not wrong, f"other bytes arrived: {wrong[:3]}")
        return result


def make_photos(data):
    """Gives the files the beginning of a camera's photo: EXIF metadata with a preview of 160 x 120 pixels."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        beginning = photo_beginning(small_jpeg(browser.new_page(), 160, 120))
        browser.close()
    for path in data.make().paths():
        with open(path, "r+b") as file:
            file.write(beginning)


def report(link, work, runs):
    """Prints medians of both programs, and the median of the ratios within a round."""
    print(f"\n{work}, {link} ({len(runs)} rounds)\n{'':12}{'fullbore':>12}{'copyparty':>12}{'ratio':>8}   goal")
    for name, (unit, goals) in GOALS.items():
        ours, theirs = ([run[program][name] for run in runs] for program in ("fullbore", "copyparty"))
        ratio = statistics.median(one / max(other, 0.01) for one, other in zip(ours, theirs))
        goal = goals[link]
        is_met = statistics.median(ours) <= 0.3 if goal == "0.3 s" else ratio <= goal
        print(f"{name:12}{statistics.median(ours):8.2f} {unit:3}{statistics.median(theirs):8.2f} {unit:3}{ratio:8.2f}"
              f"   {goal}{'' if is_met else ': missed'}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--links", default="loopback,slow")
    parser.add_argument("--works", default="photos,film")
    parser.add_argument("--film", type=int, default=4096, help="its size in MiB")
    parser.add_argument("--photos", type=int, default=300, help="their number; each has 2 MiB")
    parser.add_argument("--host", default=HOST)
    options = parser.parse_args()
    sets = {"film": harness.DataSet(f"share-film-{options.film}", [options.film * MiB]),
            "photos": harness.DataSet(f"share-photos-{options.photos}", [2 * MiB] * options.photos)}
    for link in options.links.split(","):
        for work in options.works.split(","):
            data = sets[work].make()
            if work == "photos":
                make_photos(data)
            data.warm()
            # A tenth of a slow link's rate ends a run that stands still.
            limit = 60 + data.bytes / (600_000 if link == "slow" else 10e6)
            runs = []
            for turn in range(options.rounds):
                run = {}
                for program in (fullbore, copyparty) if turn % 2 == 0 else (copyparty, fullbore):
                    run[program.__name__] = measure(program, data.paths(), link, options.host, limit)
                    print(f"{work}, {link}, {program.__name__}: " + ", ".join(f"{n} {v:.2f}" for n, v in run[program.__name__].items()), flush=True)
                runs.append(run)
            report(link, work, runs)


if __name__ == "__main__":
    main()
