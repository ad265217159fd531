"""Lists functions in the order in which common work first calls them. The linker then places called functions next to each
other, and a run has 3 MiB less of the program in memory.

usage: FULLBORE=... python3 Benchmarks/order.py

Writes scripts/link-order.txt, which `scripts/build` gives to lld. Names that no longer exist are ignored, and
new functions are placed elsewhere, so the list need not be updated with every change.
"""
import os, pathlib, re, subprocess, tempfile
import harness
from harness import FULLBORE, HERE, KiB, MiB, S3_KEYS, WORK, DataSet, Server

ORDER = HERE.parent / "scripts" / "link-order.txt"
LINE = re.compile(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$")


def watched(counts):
    return ["valgrind", "-q", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={counts}", FULLBORE]


def called(counts):
    """The functions of the program that a run called, by callgrind's output, which writes a name once and then
    numbers it."""
    known, function_of_program = {}, False
    for line in open(counts):
        if not (found := LINE.match(line)):
            continue
        callee, kind, number, name = found.groups()
        if name:
            known[kind, number] = name
        if callee:
            continue
        if kind == "ob":
            function_of_program = pathlib.Path(known[kind, number]).name == pathlib.Path(FULLBORE).name
        elif function_of_program:
            yield re.sub(r"'\d+$", "", known[kind, number])


def works(plain, secure, ours):
    """The common work: every protocol with files of each kind, TLS, and Fullbore's own server."""
    few, photos, film = (
        DataSet(f"ordered-{n}", [size] * n).make() for n, size in ((200, 50 * KiB), (20, 2 * MiB), (1, 64 * MiB)))
    push = ["push", "--quiet"]
    yield ["--version"]
    for data in (few, photos, film):
        source = f"{data.folder}/"
        for protocol, folder in (("put", "up"), ("tus", "files")):
            yield [*push, source, f"{protocol}+{plain.url}/{folder}/"]
        yield [*push, "--cacert", secure.certificate, source, f"put+{secure.url}/up/"]
        # S3 lists the parts of a film, which the server that discards everything cannot do.
        if data is not film:
            yield [*push, "--endpoint", plain.url, source, f"s3://bucket/{data.name}/"]
            yield [*push, "--cacert", secure.certificate, "--endpoint", secure.url, source, f"s3://bucket/{data.name}/"]
        yield ["push", source, f"{ours.url}/{data.name}/"]
        yield [*push, source, f"resumable+{ours.url}/again-{data.name}/"]


def main():
    harness.prepare()
    order, counts = {}, WORK / "tmp" / "called"
    environment = dict(os.environ, **S3_KEYS)
    with tempfile.TemporaryDirectory(dir=WORK / "tmp") as folder:
        served = WORK / "tmp" / "served"
        with harness.hole() as plain, harness.hole(harness.certificate()) as secure:
            with Server([*watched(served), "serve", folder, "--listen", "127.0.0.1:0"]) as ours:
                for number, work in enumerate(works(plain, secure, ours)):
                    environment["FULLBORE_JOURNAL"] = f"{folder}-{number}.sqlite"
                    run = subprocess.run(
                        [*watched(counts), *map(str, work)], env=environment, stdin=subprocess.DEVNULL,
                        capture_output=True, text=True)
                    if run.returncode != 0:
                        raise SystemExit(f"{' '.join(map(str, work))} ended with {run.returncode}: {run.stderr}")
                    order |= dict.fromkeys(called(counts))
                    print(f"{len(order):5} functions after {' '.join(map(str, work))}", flush=True)
        order |= dict.fromkeys(called(served))
    ORDER.write_text("\n".join(order) + "\n")
    print(f"{len(order):5} functions in {ORDER.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
