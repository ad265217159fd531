"""Many files and very large ones: the memory of the tab does not grow with them. File handles that survive a reload."""
import contextlib, re

from visit import *


def renderers():
    """The process ids of our browser's pages."""
    parents, found = {}, []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            parents[status.parent.name] = re.search(r"PPid:\s+(\d+)", status.read_text())[1]
            if b"--type=renderer" in (status.parent / "cmdline").read_bytes():
                found.append(status.parent.name)
        except (OSError, TypeError):
            pass

    def is_ours(process):
        while process in parents and process != str(os.getpid()):
            process = parents[process]
        return process == str(os.getpid())
    return [process for process in found if is_ours(process)]


def renderer_memory():
    """The largest resident memory of a renderer process of our browser, in bytes."""
    sizes = [0]
    for process in renderers():
        with contextlib.suppress(OSError, TypeError):
            sizes.append(int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text())[1]) * KiB)
    return max(sizes)


def watch_memory(visit, most, seconds, is_done):
    """Waits until `is_done()`. Returns the growth of the memory from the beginning to the peak."""
    begin = peak = renderer_memory()
    require(begin > 0, "no renderer process was found")
    deadline = time.monotonic() + seconds
    while not is_done():
        require(time.monotonic() < deadline, f"not done within {seconds} s: {visit.text('#total-count')}")
        peak = max(peak, renderer_memory())
        time.sleep(0.2)
    require(peak - begin < most, f"the memory of the tab grew by {(peak - begin) >> 20} MiB, from {begin >> 20} MiB")
    print(f"the memory of the tab grew by {(peak - begin) >> 20} MiB, from {begin >> 20} MiB", flush=True)


def thousand(browser, folder):
    """A folder of 1,000 pictures is sent; few rows exist at a time, and the tab's memory stays small."""
    photos = [picture(folder / f"Card/IMG_{i:04}.png", 200 * KiB + i * 100, i) for i in range(1000)]
    with share(folder / "in") as server, Visit(browser, server.port, **PHONE) as visit:
        visit.choose(folder / "Card", selector="#folder-input")
        visit.until("#total-rate", "/s")
        rows = visit.page.locator("#uploads .row").count()
        require(rows < 40, f"the list has {rows} rows")
        watch_memory(visit, 150 * MiB, 240, lambda: visit.text("#total-count").startswith("Finished"))
        visit.finish(1000)
        visit.open_finished()
        require(visit.page.locator("#finished .row").count() < 40, "the list of finished files has too many rows")
        require_same({f"Card/{p.name}": p for p in photos}, folder / "in")


def film(browser, folder):
    """A sparse file of 20 GiB is sent; the tab's memory does not grow with it."""
    path = folder / "film.mov"
    sparse_film(path, 20 * GiB, 1)
    with share(folder / "in") as server, Visit(browser, server.port) as visit:
        visit.choose(path)
        watch_memory(visit, 150 * MiB, 900, lambda: visit.text("#total-count").startswith("Finished"))
        require(same_bytes(path, folder / "in/film.mov"), "the film has other bytes")


def handles(browser, folder):
    """Where the browser gives file handles, a reloaded page goes on without choosing the files again."""
    with share(folder / "in") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        # localhost is a secure context. The files of the origin's private file system stand for those of a disk.
        with Visit(browser, link.port, host="localhost") as visit:
            visit.page.evaluate("""async () => {
              const root = await navigator.storage.getDirectory();
              const handle = await root.getFileHandle("film.mov", { create: true });
              const writer = await handle.createWritable();
              for (let index = 0; index < 32; index += 1) await writer.write(new Uint8Array(1 << 20).fill(index));
              await writer.close();
              window.showOpenFilePicker = async () => [handle];
            }""")
            visit.page.click("#pick-files")
            eventually(lambda: link.sent > 12 * MiB, "some of the file is sent")
            visit.page.reload()
            visit.until("#notices", "Not finished last time")
            before = link.sent
            visit.page.click("#notices button:text-is('Go on')")
            visit.finish(1)
            require(link.sent - before < 28 * MiB, f"{link.sent - before} bytes were sent after the reload, of 32 MiB")
        sent = (folder / "in/film.mov").read_bytes()
        require(sent == b"".join(bytes([i]) * MiB for i in range(32)), "the film has other bytes")
