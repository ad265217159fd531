"""Codes, names, folders, drops, the keyboard, and limits."""
import contextlib, os, shutil, subprocess

from visit import *


def code(browser, folder):
    """A wrong code is said to be wrong; a code is typed in any form; a new code of the server is asked for."""
    with share(folder / "in") as server:
        with Visit(browser, server.port, code=None) as visit:
            visit.wait_for("#gate:not([hidden])")
            require("terminal" in visit.text("#code-help"), "the page does not say where the code is")
            visit.screenshot("desktop-code")
            visit.page.fill("#code", "aaaa-bbbb-cccc")
            visit.page.press("#code", "Enter")
            visit.until("#code-wrong", "not right")
            require(not visit.page.is_visible("#send"), "a wrong code opens the page")
            visit.page.fill("#code", " K7MQ 4w9x—P3tz ")
            visit.page.press("#code", "Enter")
            visit.wait_for("#send:not([hidden])")
            visit.page.reload()
            visit.wait_for("#send:not([hidden])")
        with Visit(browser, server.port, code=None) as visit:
            # A browser that was offered Basic authentication would ask for a name and a password in front of the page.
            refused = []
            visit.page.on("response", lambda r: r.status == 401 and refused.append(r.headers.get("www-authenticate", "")))
            visit.page.goto(visit.page.url + "none/a.jpg#wrong-code-here")
            visit.until("#code-wrong", "not right")
            visit.page.evaluate("Promise.all([fetch('/x?ticket=0'), new Promise((r) => (Object.assign(new Image(), { onerror: r }).src = '/a.jpg?ticket=0'))])")
            eventually(lambda: len(refused) >= 4, lambda: f"the refused requests: {refused}")
            require(all(field.startswith("Bearer") and "Basic" not in field for field in refused), f"a browser is offered {refused}")
    # The server starts again with another code while a file is sent.
    film = folder / "film.mov"
    sparse_film(film, 20 * MiB, 1)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film)
            eventually(lambda: link.sent > 5 * MiB, "some of the file is sent")
            server.kill()
            (folder / "code-in").write_text("new-code-of-the-server")
            server.start()
            visit.wait_for("#gate:not([hidden])", 40)
            visit.page.fill("#code", "new-code-of-the-server")
            visit.page.press("#code", "Enter")
            visit.finish(1)
        require_same({"film.mov": film}, folder / "in")


def names(browser, folder):
    """A name that exists: the same bytes are there already, other bytes get another name, and nothing is lost."""
    old = picture(folder / "in/same.png", 200 * KiB, 1)
    picture(folder / "in/other.png", 200 * KiB, 2)
    shutil.copy(folder / "in/other.png", folder / "kept.png")
    large = folder / "in/large.mov"
    sparse_film(large, 12 * MiB, 3)
    shutil.copy(large, folder / "kept.mov")
    same, other = folder / "out/same.png", picture(folder / "out/other.png", 150 * KiB, 4)
    shutil.copy(old, same)
    sparse_film(folder / "out/large.mov", 12 * MiB, 5)
    # The number needs room in the longest name there is.
    longest = folder / "out" / ("ü" * 125 + "x.jpg")
    longest.write_bytes(b"new")
    (folder / "in" / longest.name).write_bytes(b"old")
    (folder / "old").write_bytes(b"old")
    # Phones call all pictures image.jpg: some of them are equally long, and of the same moment.
    images = [picture(folder / f"{i}/image.jpg", (60 + i // 2) * KiB, 10 + i) for i in range(10)]
    for path in images:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    with share(folder / "in") as server:
        with Visit(browser, server.port) as visit:
            visit.choose(same, other, folder / "out/large.mov")
            visit.finish(3)
            visit.open_finished()
            text = visit.text("#finished")
            require("Already there" in text, f"the page does not say that a file was there: {text}")
            require("new name: other (2).png" in text and "new name: large (2).mov" in text, f"no word of the new names: {text}")
            visit.screenshot("desktop-names")
            visit.choose(*images, longest)
            visit.finish(11)
        arrived = {sha256(p) for p in (folder / "in").glob("image*.jpg")}
        require(arrived == {sha256(p) for p in images}, f"{len(arrived)} of 10 pictures with the same name arrived")
        require_same({"same.png": same, "other.png": folder / "kept.png", "other (2).png": other, "large.mov": folder / "kept.mov",
                      longest.name: folder / "old", "ü" * 123 + " (2).jpg": longest,
                      "large (2).mov": folder / "out/large.mov"} | {p.name: p for p in (folder / "in").glob("image*.jpg")},
                     folder / "in")


def folders(browser, folder):
    """A folder is sent with its subfolders, and with names that are hard to write in URLs."""
    hard = ["a b.txt", "100%.txt", "per%20cent.txt", "hash#1.txt", "what?.txt", "semi;colon.txt", "<b>bold.txt", "ünï.txt",
            "日本語/😀.txt", "deep/er/and/deeper/x.txt", "quote'.txt", "plus+.txt", "a&b=c.txt", "empty.txt"]
    for index, name in enumerate(hard):
        path = folder / "Card" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(0 if name == "empty.txt" else 1000 + index))
    with share(folder / "in") as server:
        (folder / "in/trip").mkdir()
        with Visit(browser, server.port, path="/trip/") as visit:
            visit.choose(folder / "Card", selector="#folder-input")
            visit.finish(len(hard))
            visit.until("#entries", "Card")
    require_same({f"trip/Card/{name}": folder / "Card" / name for name in hard}, folder / "in")


def keyboard(browser, folder):
    """Everything works with the keyboard only, and the focus is always somewhere."""
    films = [folder / f"{i}.mov" for i in range(3)]
    for index, film in enumerate(films):
        sparse_film(film, 8 * MiB, index)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=6 * MiB) as link:
        with Visit(browser, link.port, code=None) as visit:
            page = visit.page
            # The listener is there from the beginning, since Chromium needs some time to pass pickers on.
            page.on("filechooser", lambda chooser: chooser.set_files([str(film) for film in films]))
            visit.wait_for("#gate:not([hidden])")
            require(page.evaluate("document.activeElement.id") == "code", "the field for the code does not have the focus")
            page.keyboard.type(CODE)
            page.keyboard.press("Enter")
            visit.wait_for("#send:not([hidden])")

            def tab_to(selector, most=40):
                for _ in range(most):
                    page.keyboard.press("Tab")
                    if page.evaluate("s => document.activeElement.matches(s)", selector):
                        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                        return require(style != "none", f"the focus on {selector} is not visible")
                raise Failure(f"the keyboard does not come to {selector}")
            tab_to("#pick-files")
            page.keyboard.press("Enter")
            visit.wait_for("#uploads .row")
            tab_to("button[aria-label='Pause: 2.mov']")
            page.keyboard.press("Enter")
            visit.until("#uploads", "Paused")
            tab_to("#pause-all")
            page.keyboard.press("Enter")
            visit.until("#total-rate", "Paused")
            page.keyboard.press("Enter")
            tab_to("button[aria-label='Go on: 2.mov']", 60)
            page.keyboard.press("Enter")
            # A window that changes its size draws the lists between the queue's changes.
            page.evaluate("void setInterval(() => dispatchEvent(new Event('resize')), 20)")
            visit.finish(3)
            require(page.evaluate("document.activeElement !== document.body"), "the focus was lost")
            tab_to("#show-finished", 60)
            page.keyboard.press("Enter")
            visit.until("#finished", "2.mov")
    require_same({film.name: film for film in films}, folder / "in")


def limits(browser, folder):
    """A file above --max-size is refused in words before others are sent; --receive-only shows no list."""
    large, small = folder / "large.mov", picture(folder / "small.png", 100 * KiB, 1)
    sparse_film(large, 3 * MiB, 1)
    others = [picture(folder / f"out/{i}.png", 900 * KiB, i) for i in range(5)]
    with share(folder / "in", "--max-size", "1M") as server, Link(server.port, bytes_per_second=MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.until("#facts", "files up to 1 MB")
            visit.choose(*others, small, large)
            visit.until("#uploads", "Too large: the receiver takes files of at most 1 MB")
            require(link.sent < 2 * MiB, "the page says that a file is too large when it has sent others")
            visit.until("#total-count", "Finished: 6 · Not sent: 1")
            visit.screenshot("phone-too-large")
            visit.page.click("button[aria-label='Remove: large.mov']")
            eventually(lambda: visit.page.locator("#uploads .row").count() == 0, "the row stays")
        require_same({path.name: path for path in [small, *others]}, folder / "in")
    with share(folder / "box", "--receive-only") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            require(not visit.page.is_visible("#folder"), "a server that only receives shows a list")
            visit.choose(small)
            visit.finish(1)
            visit.page.reload()
            visit.wait_for("#send:not([hidden])")
            visit.choose(small)
            visit.until("#total-count", "Already there: 1")
        require_same({"small.png": small}, folder / "box")


@contextlib.contextmanager
def small_disk(folder, size):
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", folder], capture_output=True).returncode != 0:
        raise Skipped("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder])


def full(browser, folder):
    """A full disk is told before and while files are sent; when there is room, it goes on by itself."""
    disk = folder / "in"
    with small_disk(disk, 20):
        film = folder / "film.mov"
        sparse_film(film, 40 * MiB, 1)
        with share(disk) as server:
            with Visit(browser, server.port, **PHONE) as visit:
                visit.choose(film)
                visit.until("#notices", "Not enough room: 41.9 MB are to be sent")
                require(not any((disk / ".fullbore").rglob("*.part")), "something was sent before the question was answered")
                require("Paused" in visit.text("#totals"), f"the totals say {visit.text('#totals')!r} beside the question")
                visit.screenshot("phone-no-room")
                visit.page.click("#notices button:text-is('Go on')")
                visit.until("#notices", "disk is full", 30)
                subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
                visit.finish(1, 60)
            require_same({"film.mov": film}, disk)


def room(browser, folder):
    """The page watches the free space while it sends: it stops before the disk is full, and goes on when there is room."""
    disk = folder / "disk"
    with small_disk(disk, 200):
        film, filler = folder / "film.mov", disk / "filler"
        sparse_film(film, 140 * MiB, 1)
        with share(disk / "in") as server, Link(server.port, bytes_per_second=4 * MiB) as link:
            with Visit(browser, link.port, **PHONE) as visit:
                visit.choose(film)
                visit.until("#facts", r"^2\d\d MB free")
                filler.write_bytes(bytes(80 * MiB))
                visit.until("#notices", "Not enough room", 30)
                require(not visit.text("#uploads").count("disk is full"), "the page does not stop before the disk is full")
                visit.until("#total-rate", "Paused")
                sent = link.sent
                filler.unlink()
                eventually(lambda: link.sent > sent + 5 * MiB, "the page does not go on", 30)
                require(visit.text("#notices").count("Not enough") == 0, "the page still says that there is no room")
                # Whoever wants to go on without enough room is not asked again.
                filler.write_bytes(bytes(80 * MiB))
                visit.until("#notices", "Not enough room", 30)
                visit.page.click("#notices button:text-is('Go on')")
                sent = link.sent
                time.sleep(12)
                require(link.sent > sent + 5 * MiB and not visit.text("#notices").count("Not enough"), "the page asks again")
                filler.unlink()
                visit.finish(1)
        require_same({"film.mov": film}, disk / "in")


def dropped(browser, folder):
    """Files and folders are dropped on the page, and a picture is pasted."""
    for name in ["Card/b/2.txt", "Card/a/1.txt", "Card/3.txt", "single.txt"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(os.urandom(5000))
    for index in range(250):  # A browser gives the names of a folder a hundred at a time.
        (folder / f"Card/b/more{index}.txt").write_bytes(os.urandom(100))
    for host in (HOST, "localhost"):  # Without and with a secure context, which has file handles.
        store = folder / f"in-{host}"
        with share(store) as server:
            with Visit(browser, server.port, host=host) as visit:
                session = visit.context.new_cdp_session(visit.page)
                data = {"items": [], "files": [str(folder / "Card"), str(folder / "single.txt")], "dragOperationsMask": 1}
                for kind in ("dragEnter", "dragOver"):
                    session.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})
                visit.wait_for("#drop-cover:not([hidden])")
                visit.screenshot("desktop-drop")
                session.send("Input.dispatchDragEvent", {"type": "drop", "x": 300, "y": 300, "data": data})
                visit.finish(254)
                require(not visit.page.is_visible("#drop-cover"), "the page still waits for the drop")
                visit.page.evaluate("""() => {
                  const data = new DataTransfer();
                  data.items.add(new File(["pasted bytes"], "image.png", { type: "image/png" }));
                  dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
                }""")
                visit.finish(1)
        require((store / "image.png").read_bytes() == b"pasted bytes", "the pasted picture has other bytes")
        (store / "image.png").unlink()
        expected = {str(p.relative_to(folder)): p for p in [*(folder / "Card").rglob("*.txt"), folder / "single.txt"]}
        require_same(expected, store)
