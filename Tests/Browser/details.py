"""Codes, names, folders, the keyboard, limits, the list of the folder, and how the page looks."""
import shutil, subprocess, urllib.parse

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
        with Visit(browser, server.port, code="wrong-code-here") as visit:
            visit.until("#code-wrong", "not right")
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
            visit.until("#notices", "a new code", 40)
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
    # Phones call all pictures image.jpg: some of them are equally long.
    images = [picture(folder / f"{i}/image.jpg", (60 + i // 2) * KiB, 10 + i) for i in range(10)]
    with share(folder / "in") as server:
        with Visit(browser, server.port) as visit:
            visit.choose(same, other, folder / "out/large.mov")
            visit.finish(3)
            visit.open_finished()
            text = visit.text("#finished")
            require("Already there" in text, f"the page does not say that a file was there: {text}")
            require("new name: other (2).png" in text and "new name: large (2).mov" in text, f"no word of the new names: {text}")
            visit.screenshot("desktop-names")
            visit.choose(*images)
            visit.finish(10)
        arrived = {sha256(p) for p in (folder / "in").glob("image*.jpg")}
        require(arrived == {sha256(p) for p in images}, f"{len(arrived)} of 10 pictures with the same name arrived")
        require_same({"same.png": same, "other.png": folder / "kept.png", "other (2).png": other, "large.mov": folder / "kept.mov",
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
            with page.expect_file_chooser() as chooser:
                page.keyboard.press("Enter")
            chooser.value.set_files([str(film) for film in films])
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
            visit.finish(3)
            require(page.evaluate("document.activeElement !== document.body"), "the focus was lost")
            tab_to("#show-finished", 60)
            page.keyboard.press("Enter")
            visit.until("#finished", "2.mov")
    require_same({film.name: film for film in films}, folder / "in")


def limits(browser, folder):
    """A file above --max-size is refused in words; the others arrive; it can be removed."""
    large, small = folder / "large.mov", picture(folder / "small.png", 100 * KiB, 1)
    sparse_film(large, 3 * MiB, 1)
    with share(folder / "in", "--max-size", "1M") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            visit.choose(large, small)
            visit.until("#uploads", "Too large: the receiver takes files of at most 1 MB")
            visit.until("#total-count", "^Not sent: 1")
            visit.screenshot("phone-too-large")
            visit.page.click("button[aria-label='Remove: large.mov']")
            eventually(lambda: visit.page.locator("#uploads .row").count() == 0, "the row stays")
        require_same({"small.png": small}, folder / "in")


def full(browser, folder):
    """A full disk is told before and while files are sent; when there is room, it goes on by itself."""
    disk = folder / "in"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk], capture_output=True).returncode != 0:
        raise Skipped("no file system can be mounted here")
    try:
        film = folder / "film.mov"
        sparse_film(film, 40 * MiB, 1)
        with share(disk) as server:
            with Visit(browser, server.port, **PHONE) as visit:
                visit.choose(film)
                visit.until("#notices", "Not enough room: 41.9 MB are chosen")
                require(not any((disk / ".fullbore").rglob("*.part")), "something was sent before the question was answered")
                visit.screenshot("phone-no-room")
                visit.page.click("text=Send anyway")
                visit.until("#notices", "disk is full", 30)
                subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
                visit.finish(1, 60)
            require_same({"film.mov": film}, disk)
    finally:
        subprocess.run(["umount", "-l", disk])


def listing(browser, folder):
    """The list shows names as they are, sorted, with links; moving to another folder does not end the uploads."""
    store = folder / "in"
    for index, name in enumerate(["<img src=x onerror=alert(1)>.txt", "b:colon.txt", "10.txt", "9.txt", "javascript:alert(1)"]):
        (store / name).parent.mkdir(exist_ok=True)
        (store / name).write_bytes(os.urandom(1000 * (index + 1)))
        os.utime(store / name, (1.7e9 + index * 1e6,) * 2)
    (store / "Sub & folder").mkdir()
    picture(store / "Sub & folder/inside.png", 50 * KiB, 3)
    film = folder / "film.mov"
    sparse_film(film, 30 * MiB, 1)
    with share(store, "--download") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        with Visit(browser, link.port) as visit:
            page = visit.page
            visit.until("#entries", "onerror")
            order = lambda: page.locator("#entries .name").all_inner_texts()
            require(order() == ["Sub & folder", "9.txt", "10.txt", "<img src=x onerror=alert(1)>.txt", "b:colon.txt",
                                "javascript:alert(1)"] or order()[0] == "Sub & folder" and order().index("9.txt") < order().index("10.txt"),
                    f"sorted by name: {order()}")
            page.select_option("#sort", "size")
            eventually(lambda: order()[1] == "javascript:alert(1)", lambda: f"sorted by size: {order()}")
            page.select_option("#sort", "modified")
            eventually(lambda: order()[-1] == "<img src=x onerror=alert(1)>.txt", lambda: f"sorted by date: {order()}")
            require(page.locator("#entries img[src='x']").count() == 0, "a name became markup")
            with page.expect_download() as download:
                page.click("a[aria-label='Download: b:colon.txt']")
            require(sha256(download.value.path()) == sha256(store / "b:colon.txt"), "the download has other bytes")
            visit.screenshot("desktop-folder")
            visit.choose(film)
            eventually(lambda: link.sent > 5 * MiB, "the film is being sent")
            page.click("text=Sub & folder")
            visit.until("#entries", "inside.png")
            require(urllib.parse.unquote(page.url).endswith("/Sub & folder/"), f"the address is {page.url}")
            eventually(lambda: page.evaluate("document.querySelector('#entries img')?.naturalWidth") == 64, "no thumbnail")
            page.go_back()
            visit.until("#entries", "9.txt")
            visit.finish(1)
            visit.until("#entries", "film.mov")
            page.goto(page.url.rstrip("/") + "/Sub%20&%20folder/")
            visit.until("#entries", "inside.png")
            visit.until("#trail", "in / Sub & folder")
    require(sha256(film) == sha256(store / "film.mov"), "the film has other bytes")


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


def appearance(browser, folder):
    """German, dark, and 320 pixels wide: nothing is cut off, contrast and sizes of buttons are sufficient."""
    for index in range(12):
        picture(folder / f"in/Urlaub {index}.png", 80 * KiB, index)
    films = [folder / f"Ein Film mit einem sehr langen Namen, der nicht in eine Zeile passt {i}.mov" for i in range(4)]
    for index, film in enumerate(films):
        sparse_film(film, 12 * MiB, index)
    pictures = [picture(folder / f"out/IMG_{i:04}.png", 600 * KiB, i + 40) for i in range(6)]
    with share(folder / "in", "--download") as server:
        for name, options in {"dark-phone": dict(PHONE, color_scheme="dark"), "light-desktop": DESKTOP,
                              "dark-desktop": dict(DESKTOP, color_scheme="dark"),
                              "light-narrow": dict(PHONE, viewport={"width": 320, "height": 640})}.items():
            with Link(server.port, bytes_per_second=MiB // 2) as link, Visit(browser, link.port, locale="de-DE", **options) as visit:
                visit.until("h1", "^Senden an in$")
                require(visit.page.evaluate("document.documentElement.lang") == "de", "the language is not told")
                visit.choose(*pictures, *films)
                visit.until("#total-rate", "noch etwa")
                visit.until("#entries", "Urlaub 3")
                visit.screenshot(name)
                check_appearance(visit, name)
                # Nothing is left for the next look.
                def remove_all():
                    visit.page.evaluate("document.querySelectorAll('#uploads .row').forEach((row) => row.removal.click())")
                    return visit.page.locator("#uploads .row").count() == 0
                eventually(remove_all, lambda: f"removed files stay in the list: {visit.text('#uploads')}")
                for path in (folder / "in").glob("*"):
                    if path.name.startswith(("Ein Film", "IMG_")):
                        path.unlink()


def check_appearance(visit, name):
    wide = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    require(wide <= 0, f"{name}: the page is {wide} pixels too wide")
    small = visit.page.evaluate("""() => [...document.querySelectorAll("button, select, .rows a.icon")]
      .map((e) => [e.getAttribute("aria-label") || e.textContent, e.getBoundingClientRect()])
      .filter(([, r]) => r.width > 0 && (r.width < 44 || r.height < 44)).map(([n, r]) => `${n} ${r.width}×${r.height}`)""")
    require(not small, f"{name}: small buttons: {small[:3]}")
    nameless = visit.page.evaluate("""() => [...document.querySelectorAll("button, a, input:not([hidden]), select")]
      .filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)""")
    require(not nameless, f"{name}: without a name for screen readers: {nameless[:3]}")
    weak = visit.page.evaluate("""() => {
      const light = (c) => { const v = c.map((x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
      const parse = (text) => text.match(/[\\d.]+/g).map(Number);
      const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
      const found = [];
      for (const e of document.querySelectorAll("body *")) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility() || e.closest("noscript, .unseen")) continue;
        const [one, other] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((a, b) => b - a);
        const ratio = (one + 0.05) / (other + 0.05);
        if (ratio < 4.5) found.push(`${e.className || e.id || e.tagName} ${ratio.toFixed(2)}`);
      }
      return found;
    }""")
    require(not weak, f"{name}: weak contrast: {weak[:3]}")
