"""The list of the folder: names, order, links, previews of photos, and the folder as one file."""
import urllib.parse, zipfile

from visit import *


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


def gallery(browser, folder):
    """Photos show the previews that their cameras made, or an icon; a folder is fetched as one file."""
    store = folder / "Holiday"
    with share(store, "--download") as server:
        with Visit(browser, server.port) as visit:
            visit.until("#folder-note", "Nothing is here yet")
            require(not visit.page.is_visible("#archive"), "an empty folder is offered as a file")
            jpeg = small_jpeg(visit.page)
            photo(store / "turned.jpg", jpeg, with_preview=True)
            photo(store / "plain.jpg", jpeg, with_preview=False)
            for index in range(4):
                picture(store / f"IMG_{2041 + index}.png", 300 * KiB + index * 9000, index)
            (store / "Süden").mkdir()
            (store / "Süden/日本.txt").write_text("inside")
            visit.page.reload()
            visit.until("#entries", "turned.jpg")
            # The browser turns the preview as the photo's orientation says.
            eventually(lambda: picture_size(visit.page, "turned.jpg") == [32, 48],
                       lambda: f"the preview of a photo has the size {picture_size(visit.page, 'turned.jpg')}")
            eventually(lambda: picture_size(visit.page, "plain.jpg") is None, "a photo without a preview has no icon")
            visit.screenshot("desktop-gallery")
            require(fetched(visit.page) == files_in(store), "the archive has other files")
            visit.page.click("text=Süden")
            visit.until("#entries", "日本")
            require(fetched(visit.page) == files_in(store / "Süden"), "the archive of a subfolder has other files")
        with Link(server.port, bytes_per_second=256 * KiB) as link, Visit(browser, link.port) as visit:
            # Rows of files that are sent show the preview, also where the rest cannot be decoded; without one, the photo.
            for name, rest, with_preview in [("preview.jpg", b"\xff\xd8", True), ("photo.jpg", jpeg, False)]:
                photo(folder / name, jpeg, with_preview, rest)
            visit.choose(folder / "preview.jpg", folder / "photo.jpg")
            for name in "preview.jpg", "photo.jpg":
                eventually(lambda: drawn_size(visit.page, name) == [64, 96],
                           lambda: f"the picture in the row of {name} has the size {drawn_size(visit.page, name)}")
            visit.finish(2)
    with share(store) as server, Visit(browser, server.port) as visit:
        visit.until("#entries", "turned.jpg")
        require(not visit.page.is_visible("#archive"), "a server that gives no files offers the folder as a file")
        require(visit.page.locator("#entries img").count() == 0, "a server that gives no files is asked for previews")


def calm(browser, folder):
    """While many files are sent, their rows change once a second, hidden rows of the folder never; a button acts at once."""
    store = folder / "in"
    for index in range(40):
        picture(store / f"there/{index}.png", 10 * KiB, index)
        (store / f"{index}.txt").write_text("there")
    files = [folder / f"{i:03}.bin" for i in range(300)]
    for path in files:
        path.write_bytes(os.urandom(40 * KiB))
    # So slow that files wait until one is paused, also where the browser is slow.
    with share(store) as server, Link(server.port, bytes_per_second=32 * KiB) as link:
        with Visit(browser, link.port) as visit:
            page = visit.page
            visit.until("#entries", "9.txt")
            visit.choose(*files)
            visit.until("#total-count", r"^\d\d+ / 300")
            page.evaluate("""() => {
              window.drawings = [];
              window.hidden = 0;
              const all = { childList: true, subtree: true, characterData: true };
              new MutationObserver(() => drawings.push(performance.now())).observe(document.getElementById("uploads"), all);
              new MutationObserver((records) => (hidden += records.length)).observe(document.getElementById("entries"), all);
            }""")
            time.sleep(4)
            drawings, hidden = page.evaluate("[drawings.length, hidden]")
            require(2 <= drawings <= 7, f"the rows changed {drawings} times in 4 s")
            require(hidden == 0, f"rows that nobody sees changed {hidden} times")

            def pause():
                """Pauses the last row that waits, and is drawn at once. Rows of files that were sent since do nothing."""
                page.evaluate("[...document.querySelectorAll('#uploads .row')].findLast((row) => row.item.state === 'waiting')?.change.focus()")
                page.keyboard.press("Enter")
                time.sleep(0.2)
                return "Paused" in visit.text("#uploads")
            eventually(pause, "no row says that it is paused", 20)
            link.rate = 8 * MiB
            page.evaluate("[...document.querySelectorAll('#uploads .row')].find((row) => row.item.state === 'paused').change.click()")
            visit.finish(300)
            require_same({path.name: path for path in files} | {str(p.relative_to(store)): p for p in store.rglob("*.[pt][nx][gt]")}, store)


def drawn_size(page, name):
    """The size of the picture in the row of a file that is being sent, or null."""
    return page.evaluate("""name => {
      const canvas = [...document.querySelectorAll("#uploads .row")].find((row) => row.item.path === name)?.canvas;
      return canvas && !canvas.hidden ? [canvas.width, canvas.height] : null;
    }""", name)


def picture_size(page, name):
    """The size of the picture in the row of a file, or null."""
    return page.evaluate("""name => {
      const row = [...document.querySelectorAll("#entries .row")].find((row) => row.link.textContent === name);
      const picture = row.querySelector("img");
      return picture && [picture.naturalWidth, picture.naturalHeight];
    }""", name)


def fetched(page):
    """The digests of the files in the archive that the page offers, by their paths below the folder."""
    with page.expect_download() as download:
        page.click("#archive")
    with zipfile.ZipFile(download.value.path()) as archive:
        require(archive.testzip() is None, "the archive is damaged")
        return {name.split("/", 1)[1]: hashlib.sha256(archive.read(name)).hexdigest()
                for name in archive.namelist() if not name.endswith("/")}


def files_in(folder):
    return {str(p.relative_to(folder)): sha256(p) for p in folder.rglob("*") if p.is_file() and ".fullbore" not in p.parts}
