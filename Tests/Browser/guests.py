"""What a guest sees of others, of the receiver's end, and of long names and refusals."""
import shutil, subprocess

from visit import *


def updates(browser, folder):
    """An open page shows what others send, and its links work after the receiver was started again."""
    store = folder / "in"
    with share(store, "--download") as server:
        with Visit(browser, server.port) as visit, Visit(browser, server.port, **PHONE) as other:
            visit.until("#folder-note", "Nothing is here yet")
            photo = picture(folder / "a.png", 100 * KiB, 1)
            other.choose(photo)
            visit.until("#entries", "a.png", 15)
            visit.page.evaluate("document.querySelector('#entries .row').mark = 1")
            server.kill()
            visit.until("#notices", "does not answer", 20)
            server.start()
            with visit.page.expect_download() as download:
                visit.page.click("a[aria-label='Download: a.png']")
            require(sha256(download.value.path()) == sha256(photo), "the link of before the restart gives other bytes")
            eventually(lambda: "does not answer" not in visit.text("#notices"), "the page still says that nothing answers", 20)
            require(visit.page.evaluate("document.querySelector('#entries .row').mark") == 1, "an unchanged list was drawn again")
            # With a new code, the page asks for it, and has new links then.
            server.kill()
            (folder / "code-in").write_text("another-code")
            server.start()
            visit.wait_for("#gate:not([hidden])", 30)
            require("new code" in visit.text("#gate"), "the page does not say why it asks")
            visit.page.fill("#code", "another-code")
            visit.page.press("#code", "Enter")
            (store / "b.txt").write_text("new")
            visit.until("#entries", "b.txt", 15)
            with visit.page.expect_download() as download:
                visit.page.click("a[aria-label='Download: a.png']")
            require(sha256(download.value.path()) == sha256(photo), "the renewed link gives other bytes")
            other.errors.clear()


def silence(browser, folder):
    """A phone that is out of reach gets no notice: no rate is shown then. Its clock may be wrong."""
    film = folder / "film.mov"
    sparse_film(film, 24 * MiB, 1)
    with share(folder / "in", "--for", "2h") as server, Link(server.port, bytes_per_second=2 * MiB) as link:
        context = browser.new_context(**PHONE)
        context.add_init_script("const now = Date.now; Date.now = () => now() + 3 * 3600e3")
        with Visit(browser, link.port, context=context) as visit:
            visit.choose(film)
            visit.until("#total-rate", "MB/s")
            link.is_silent = True
            visit.until("#total-rate", "^Waiting$", 12)
            link.is_silent = False
            visit.until("#total-rate", "MB/s", 12)
            link.is_away = True
            link.cut_all()
            visit.until("#notices", "does not answer", 20)
            link.is_away = False
            visit.finish(1)
            visit.errors.clear()
    require(sha256(film) == sha256(folder / "in/film.mov"), "the film has other bytes")


def total(browser, folder):
    """--max-total is not called a full disk, and what was refused does not count as sent."""
    films = [folder / f"{i}.bin" for i in range(3)]
    for index, film in enumerate(films):
        film.write_bytes(os.urandom(3_000_000))
    with share(folder / "in", "--max-total", "5000000") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            visit.choose(*films)
            visit.until("#notices", "Not enough room")
            visit.page.click("#notices button:text-is('Go on')")
            visit.until("#uploads", "takes no more than 5 MB in all")
            visit.until("#notices", "takes no more than 5 MB in all")
            require("disk" not in visit.text("body"), "the page speaks of a full disk")
            visit.until("#total-count", r"1 / 3 · 3 MB of 9 MB")
            log = folder / "log-in.txt"
            eventually(lambda: "all files together may have 5000000 bytes" in log.read_text(), lambda: log.read_text())
            visit.screenshot("phone-max-total")
            for path in (folder / "in").glob("*.bin"):
                path.unlink()
            visit.until("#total-count", r"2 / 3|Finished", 60)
    # The room that is promised to a film is not missing, also after a reload.
    film = folder / "film.mov"
    sparse_film(film, 26_000_000, 1)
    with share(folder / "other", "--max-total", "30000000") as server, Link(server.port, bytes_per_second=1_300_000) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film)
            eventually(lambda: link.sent > 11_000_000, "a part of the film is sent")
            link.rate = 2_000_000
            visit.page.reload()
            visit.until("#notices", "Not finished last time: film.mov")
            visit.choose(film)
            visit.finish(1, 30)


def words(browser, folder):
    """Long names keep their endings, a tap anywhere opens an entry, and a refusal is read as a whole and does not come back."""
    store = folder / "in"
    long = "a very long name of a film from the summer holiday 2026 " * 3 + "IMG_0042.mov"
    (store / "sub").mkdir(parents=True)
    (store / long).write_bytes(bytes(2000))
    picture(store / "photo.png", 20 * KiB, 1)
    kept = folder / ".fullbore"
    kept.write_bytes(b"x")
    renamed = folder / "out" / ("IMG_" + "0123456789" * 6 + ".JPG")
    renamed.parent.mkdir()
    renamed.write_bytes(b"other")
    (store / renamed.name).write_bytes(b"there")
    card = folder / "out/Card"
    card.mkdir()
    (card / "0.bin").write_bytes(b"a")
    (store / "Card").write_bytes(b"not a folder")
    with share(store, "--download") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            page = visit.page
            visit.until("#entries", r"…\S*0042\.mov")
            require(page.get_attribute(f"#entries a[title='{long}']", "href") is not None, "the whole name is nowhere")
            for name in page.locator("#entries .name").all():
                require(name.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), f"cut off: {name.inner_text()}")
            visit.choose(kept, renamed)
            visit.until("#total-count", "Finished: 1 · Not sent: 1")
            visit.open_finished()
            visit.until("#finished", r"new name: IMG_.*….*\(2\)\.JPG")
            require(page.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#finished .status'))"),
                    "the new name is cut off: " + visit.text("#finished"))
            page.tap("#uploads .status")
            require(page.evaluate("""() => {
              const status = document.querySelector("#uploads .status");
              const { left, bottom } = status.getBoundingClientRect();
              return status.scrollHeight <= status.clientHeight + 1 && document.elementFromPoint(left + 5, bottom - 5) === status;
            }"""), "the reason is cut off")
            require("The receiver refuses it: its name is reserved." in visit.text("#uploads"), visit.text("#uploads"))
            require(not page.is_visible("button[aria-label^='Try again']"), "an attempt that can only fail is offered")
            visit.screenshot("phone-refused")
            # The picture of an entry is a part of its link.
            row = page.locator("#entries .row", has_text="sub")
            row.evaluate("row => row.scrollIntoView({ block: 'center' })")
            row = row.bounding_box()
            page.touchscreen.tap(row["x"] + 30, row["y"] + 30)
            visit.until("#place", "Send to in / sub")
            page.go_back()
            visit.until("#entries", "photo.png")
            page.reload()
            visit.until("#entries", "photo.png")
            time.sleep(1)
            require(".fullbore" not in visit.text("#notices"), "a file that was refused for good is called unfinished")
            page.set_viewport_size({"width": 180, "height": 400})
            wide = page.evaluate("document.documentElement.scrollWidth")
            require(wide <= 180, f"the page is {wide} pixels wide on a screen of 180")
            page.goto(f"http://{HOST}:{server.port}/none/")
            visit.until("#folder-note", "no such folder")
        # A German reader with a very small screen.
        with Visit(browser, server.port, locale="de-DE", **dict(PHONE, viewport={"width": 180, "height": 400})) as visit:
            visit.choose(kept)
            visit.until("#uploads", "Der Empfänger lehnt es ab: Der Name ist ihm vorbehalten.")
            wide = visit.page.evaluate("document.documentElement.scrollWidth")
            require(wide <= 180, f"the German page is {wide} pixels wide on a screen of 180")
            # No other name for the file helps where a file has the name of its folder.
            requests = visit.count_requests()
            visit.choose(card, selector="#folder-input")
            visit.until("#uploads", "Der Empfänger lehnt es ab: Der Name des Ordners ist vergeben.")
            require(len(requests) <= 2, f"the page tries other names: {requests}")
        # The address of a file leads to the file, once the code is known.
        with Visit(browser, server.port, code=None, path="/photo.png") as visit:
            visit.wait_for("#gate:not([hidden])")
            visit.page.fill("#code", CODE)
            visit.page.press("#code", "Enter")
            visit.page.wait_for_url("**/photo.png?ticket=*", timeout=20_000)
            require(visit.page.evaluate("document.images[0].naturalWidth") == 64, "the file is not shown")
        # Guests learn nothing of the receiving computer.
        with Visit(browser, server.port, **PHONE) as visit:
            shutil.rmtree(store)
            visit.choose(picture(folder / "late.png", 10 * KiB, 2))
            visit.until("#notices", "The receiver has trouble. This page tries again.")
            require(str(folder) not in visit.text("body"), "the page shows the path of the folder")


def again(browser, folder):
    """What was refused for a reason that may pass is sent by "Try again": one file, or all; another refusal has no such button."""
    card, store = folder / "out/Card", folder / "in"
    card.mkdir(parents=True)
    sent = {f"Card/{i}.bin": card / f"{i}.bin" for i in range(4)}
    for path in sent.values():
        path.write_bytes(os.urandom(1000))
    kept = folder / ".fullbore"
    kept.write_bytes(b"x")
    store.mkdir()
    (store / "Card").write_bytes(b"not a folder")
    with share(store) as server:
        with Visit(browser, server.port, **PHONE) as visit:
            first = "button[aria-label='Try again: Card/0.bin']"
            visit.choose(card, selector="#folder-input")
            visit.choose(kept)
            visit.until("#total-count", "Finished: 0 · Not sent: 5")
            visit.until("#retry-all", "^Try all 4 again$")
            require(visit.page.locator("button[aria-label='Try again: .fullbore']:visible").count() == 0, "a reserved name is tried again")
            visit.screenshot("phone-try-again")
            # The reason is still there.
            requests = visit.count_requests()
            visit.page.tap(first)
            # Requests are noted while the page is asked for something.
            eventually(lambda: visit.page.is_visible("#total-count") and len(requests) > 0, "nothing is tried")
            visit.until("#total-count", "Finished: 0 · Not sent: 5")
            visit.wait_for(first)
            (store / "Card").unlink()
            visit.page.tap(first)
            visit.until("#total-count", "Finished: 1 · Not sent: 4")
            visit.page.tap("#retry-all")
            visit.until("#total-count", "Finished: 4 · Not sent: 1")
            eventually(lambda: not visit.page.is_visible("#retry-all"), "the button stays")
    require_same(sent, store)


def once(browser, folder):
    """--once does not end under a page that is open, is told before, and is told when it has happened."""
    with share(folder / "in", "--once") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            visit.until("#facts", "closes 30 s after you have left this page")
            visit.choose(picture(folder / "a.png", 10 * KiB, 1))
            visit.finish(1)
            time.sleep(40)
            visit.choose(picture(folder / "b.png", 10 * KiB, 2))
            visit.finish(1)
            # A person looks for the next picture in another program.
            visit.page.evaluate("""() => {
              Object.defineProperty(document, "hidden", { get: () => window.isAway });
              window.isAway = true;
              document.getElementById("files-input").dispatchEvent(new Event("click"));
            }""")
            time.sleep(40)
            visit.page.evaluate("document.getElementById('files-input').onchange({ target: { files: [], value: '' } })")
            eventually(lambda: server.process.poll() is not None, "the receiver does not end when the page is not used", 60)
            visit.page.evaluate("window.isAway = false")
            visit.until("#notices", "has closed after the visit", 40)
