#!/usr/bin/env python3
"""Long uploads over emulated links: large files, many photographs and every protocol, with connection resets, changing
rates and stopped processes. Checks the exit status, every byte, peak memory and temporary files.

    links.py short            takes about five minutes
    links.py long             takes about an hour and a half; needs 45 GB of disk
    links.py NAME...          runs only these scenarios; links.py --list names them
"""
import dataclasses, os, signal, sys, time

from support import *

MEMORY = 64 * MiB if "debug" in str(FULLBORE) else 40 * MiB


@dataclasses.dataclass
class Scenario:
    name: str
    prefix: str = ""                # of the URL: tus+, put+, resumable+, form+, dav+; s3 selects the S3 server
    film: int = 0                   # bytes of one film
    photos: int = 0
    mbit: int = 400
    delay_ms: float = 5
    flags: tuple = ()
    reset_mean: int = 0             # mean number of bytes after which a connection is reset
    rate_seconds: float = 0         # how often the rate changes
    stops_client: tuple = ()        # (seconds between pauses, seconds of each pause)
    stops_server: tuple = ()
    kills: bool = False             # kills the server once and the client once during the upload
    is_short: bool = False
    is_pipe: bool = False

    def size(self):
        return self.film + self.photos * 64 * KiB


SCENARIOS = [
    # The short scenarios run beside other tests, so their rates leave processor time to those.
    Scenario("short-film-tus-one-part", "tus+", film=2 * GiB, mbit=150, flags=("--part-size", "8G", "-j", "1"), is_short=True),
    Scenario("short-card", photos=1000, film=512 * MiB, mbit=100, is_short=True),
    Scenario("short-card-bwlimit", photos=300, film=512 * MiB, mbit=200, flags=("--bwlimit", "8M"), is_short=True),
    Scenario("short-photos", photos=5000, mbit=400, delay_ms=25, is_short=True),
    Scenario("short-film-resets", film=768 * MiB, mbit=120, reset_mean=200 * MiB, rate_seconds=5, is_short=True),
    Scenario("short-sleeps", "resumable+", film=512 * MiB, mbit=100, stops_client=(10, 8), is_short=True),

    Scenario("film-tus-one-part", "tus+", film=6 * GiB, mbit=800, flags=("--part-size", "8G")),
    Scenario("film-20-gib", film=20 * GiB, mbit=800),
    Scenario("film-put", "put+", film=6 * GiB, mbit=600),
    Scenario("film-ietf", "resumable+", film=6 * GiB, mbit=400),
    Scenario("film-form", "form+", film=6 * GiB, mbit=600),
    Scenario("film-dav-nginx", "dav+", film=6 * GiB, mbit=600),
    Scenario("film-s3", "s3", film=6 * GiB, mbit=600),
    Scenario("film-pipe-tus", "tus+", film=6 * GiB, mbit=600, is_pipe=True),
    Scenario("film-pipe-put", "put+", film=4 * GiB, mbit=600, is_pipe=True),
    Scenario("film-one-job", film=6 * GiB, mbit=400, flags=("-j", "1")),
    Scenario("film-resets", film=6 * GiB, mbit=400, reset_mean=700 * MiB),
    Scenario("film-ietf-resets", "resumable+", film=6 * GiB, mbit=400, reset_mean=700 * MiB),
    Scenario("film-s3-resets", "s3", film=4 * GiB, mbit=400, reset_mean=300 * MiB),
    Scenario("film-rates", film=6 * GiB, mbit=800, rate_seconds=7),
    Scenario("film-kills", film=6 * GiB, mbit=400, kills=True),
    Scenario("film-client-sleeps", film=3 * GiB, mbit=200, stops_client=(20, 45)),
    Scenario("film-server-sleeps", film=3 * GiB, mbit=200, stops_server=(20, 20)),
    Scenario("photos-30000", photos=30000, mbit=200, delay_ms=25),
    Scenario("photos-30000-ietf", "resumable+", photos=30000, mbit=400),
    Scenario("photos-one-job", photos=3000, mbit=100, flags=("-j", "1")),
    Scenario("photos-resets", photos=10000, mbit=200, reset_mean=20 * MiB),
    Scenario("photos-s3", "s3", photos=10000, mbit=200),
    Scenario("card-bwlimit", photos=3000, film=3 * GiB, mbit=400, flags=("--bwlimit", "20M")),
    Scenario("card-slow", photos=500, film=256 * MiB, mbit=20, delay_ms=40),
]


def start_server(scenario, store, log):
    if scenario.prefix == "s3":
        (store / "media").mkdir()
        return rclone_s3(store, log)
    if scenario.prefix == "dav+":
        return nginx(store, log)
    return serve(store, log)


def destination(scenario, link):
    if scenario.prefix == "s3":
        return ["s3://media/in/", "--endpoint", f"http://127.0.0.1:{link.port}", "--addressing", "path"]
    folder = "" if scenario.prefix == "form+" else "in/"
    return [f"{scenario.prefix}http://127.0.0.1:{link.port}/{folder}"]


def where_it_arrives(scenario, store):
    if scenario.prefix == "s3":
        return store / "media/in"
    return store if scenario.prefix == "form+" else store / "in"


def stop_for(process, seconds):
    process.signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.signal(signal.SIGCONT)


def push(scenario, client, card, server, link):
    """Runs the client until it ends. Returns the exit status, the output and the peak memory of the last run."""
    arguments = ["push", "--quiet", *scenario.flags, *server.credentials]
    reader = subprocess.DEVNULL
    if scenario.is_pipe:
        feeder = subprocess.Popen(["cat", card / "film.mov"], stdout=subprocess.PIPE)
        reader = feeder.stdout
        arguments += ["-", "--name", "film.mov"]
    else:
        arguments += [f"{card}/"]
    arguments += destination(scenario, link)
    limit = 120 + scenario.size() * 8 / (scenario.mbit * 1e6) * (20 if scenario.rate_seconds or scenario.reset_mean else 6)
    client.start(*arguments, stdin=reader)
    if scenario.kills:
        half = scenario.size() * 8 / (scenario.mbit * 1e6) / 3
        time.sleep(half)
        server.kill()
        time.sleep(2)
        server.start()
        time.sleep(half)
        os.killpg(client.process.pid, signal.SIGKILL)
        client.process.wait()
        client.start(*arguments)
    with contextlib.ExitStack() as stack:
        if scenario.stops_client:
            between, length = scenario.stops_client
            pid = client.process.pid

            def sleep():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGSTOP)
                    time.sleep(length)
                    os.killpg(pid, signal.SIGCONT)

            stack.enter_context(Every(between, sleep))
        if scenario.stops_server:
            between, length = scenario.stops_server
            stack.enter_context(Every(between, lambda: stop_for(server, length)))
        return client.wait(limit)


def check(scenario):
    """Returns a line of numbers, or the reason why the scenario was skipped. Raises `Failure`."""
    with scratch() as folder, contextlib.ExitStack() as stack:
        card, store, log = folder / "card", folder / "store", folder / "log.txt"
        card.mkdir()
        store.mkdir()
        if scenario.film:
            sparse_film(card / "film.mov", scenario.film, scenario.name)
        if scenario.photos:
            photographs(card / "DCIM", scenario.photos, 64 * KiB, scenario.name)
        server = start_server(scenario, store, log)
        if server is None:
            return "skipped: no rclone that serves S3 (scripts/bootstrap test)"
        stack.enter_context(server)
        link = stack.enter_context(slowlink(
            server.port, log, mbit=scenario.mbit, delay_ms=scenario.delay_ms, reset_mean=scenario.reset_mean,
            rate_seconds=scenario.rate_seconds))
        client = Client(folder / "home")
        start = time.monotonic()
        status, text, peak = push(scenario, client, card, server, link)
        seconds = time.monotonic() - start
        if status != 0:
            raise Failure(f"exit {status} after {seconds:.0f} s: {text[-2000:]}")
        if server.process.poll() is not None:
            raise Failure(f"the server ended with {server.process.poll()}: {log.read_text(errors='replace')[-2000:]}")
        arrived = where_it_arrives(scenario, store)
        sent = [path.relative_to(card) for path in card.rglob("*") if path.is_file()]
        for path in sent:
            if not same_bytes(card / path, arrived / (path.name if scenario.prefix == "form+" else path)):
                raise Failure(f"exit 0, and {path} is not the same at the destination")
        there = sum(1 for path in arrived.rglob("*") if path.is_file() and ".fullbore" not in path.parts)
        if there != len(sent):
            raise Failure(f"{len(sent)} files were sent, and {there} are there")
        left = [str(path) for path in (folder / "home/tmp").rglob("*")]
        if left:
            raise Failure(f"temporary files: {left[:5]}")
        if peak > MEMORY:
            raise Failure(f"{peak / MiB:.1f} MiB of memory, {MEMORY >> 20} allowed")
        rate = scenario.size() * 8 / seconds / 1e6
        return f"{len(sent)} files, {scenario.size() / GiB:.2f} GiB in {seconds:.0f} s ({rate:.0f} of {scenario.mbit} Mbit/s), {peak / MiB:.1f} MiB"


def main(arguments):
    if arguments == ["--list"]:
        return print("\n".join(s.name for s in SCENARIOS))
    if arguments in (["short"], ["long"]):
        chosen = [s for s in SCENARIOS if s.is_short == (arguments == ["short"])]
    else:
        chosen = [s for s in SCENARIOS if s.name in arguments]
    if not chosen:
        raise SystemExit(__doc__)
    results = Results("links")
    for scenario in chosen:
        try:
            text = check(scenario)
            results.add("skipped" if text.startswith("skipped") else "passed", scenario.name, text)
        except Failure as failure:
            results.add("failed", scenario.name, str(failure))
    results.finish()


main(sys.argv[1:])
