"""The main stories: what happens to a link, a page or a server while files are sent."""
import http.server, shutil

from visit import *


def phone(browser, folder):
    """A phone sends 50 photos and a film of 512 MiB over a link that breaks."""
    send_card(browser, folder, 512 * MiB, cut_mean=40 * MiB)


def large(browser, folder):
    """A phone sends 50 photos and a film of 2 GiB over a link that breaks."""
    send_card(browser, folder, 2 * GiB, cut_mean=100 * MiB)


def send_card(browser, folder, film_size, cut_mean):
    sent = make_card(folder, film_size)
    with share(folder / "Pictures", "--download") as server, Link(server.port, cut_mean=cut_mean) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            require("#" not in visit.page.url, "the code stays in the address")
            visit.screenshot("phone-start")
            visit.choose(*sent)
            visit.until("#total-rate", "/s")
            eventually(lambda: "answer" not in visit.text("#notices"), "the page does not notice that the link works")
            visit.screenshot("phone-sending")
            visit.finish(51, 240)
            visit.until("#entries", "IMG_0000.png")
            visit.screenshot("phone-done")
        check_card(link, sent, folder / "Pictures")


def make_card(folder, film_size):
    """50 photos and a film."""
    photos = [picture(folder / f"out/IMG_{i:04}.png", 300 * KiB + i * 1000, i) for i in range(50)]
    sparse_film(folder / "out/film.mov", film_size, 7)
    return [*photos, folder / "out/film.mov"]


def check_card(link, sent, received):
    """The link broke, and all files have arrived with their bytes and times."""
    require(link.cuts >= 4, f"the link broke only {link.cuts} times")
    require_same({path.name: path for path in sent}, received)
    wrong = [p.name for p in sent if abs(p.stat().st_mtime - (received / p.name).stat().st_mtime) > 0.01]
    require(not wrong, f"modification times are lost: {wrong[:3]}")


def reload(browser, folder):
    """The page is reloaded in mid-file; the same file chosen again goes on where it was."""
    film = folder / "film.mov"
    sparse_film(film, 48 * MiB, 3)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=16 * MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film)
            eventually(lambda: link.sent > 24 * MiB, "half of the file is sent")
            visit.page.reload()
            visit.until("#notices", "film.mov")
            visit.screenshot("phone-unfinished")
            before = link.sent
            visit.choose(film)
            visit.finish(1)
            again = link.sent - before
            require(again < 40 * MiB, f"{again} bytes were sent after the reload, of {film.stat().st_size}")
            eventually(lambda: "film.mov" not in visit.text("#notices"), "the page still says that the file is unfinished")
            # Once more: nothing of it is sent.
            visit.page.reload()
            visit.wait_for("#send:not([hidden])")
            require("film.mov" not in visit.text("#notices"), "the page says that a finished file is unfinished")
            before = link.sent
            visit.choose(film)
            visit.until("#total-count", "Already there: 1")
            require(link.sent - before < MiB, "a file that was sent before was sent again")
            # Unless it is gone.
            (folder / "in/film.mov").unlink()
            visit.page.reload()
            visit.wait_for("#send:not([hidden])")
            visit.choose(film)
            visit.finish(1)
        require_same({"film.mov": film}, folder / "in")


def another(browser, folder):
    """Another receiver at the same address gets every file, and a film goes on there after cuts and a reload."""
    film, raw = folder / "film.mov", folder / "DSC00001.ARW"
    sparse_film(film, 40 * MiB, 12)
    raw.write_bytes(os.urandom(100 * KiB))
    # A picture of another camera, which has the same name and length.
    theirs, store = folder / "theirs", folder / "second"
    theirs.write_bytes(os.urandom(100 * KiB))
    store.mkdir()
    shutil.copy(theirs, store / raw.name)
    os.utime(store / raw.name, (1_600_000_000, 1_600_000_000))
    with share(folder / "first") as first, share(store) as second, Link(first.port) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film, raw)
            visit.finish(2)
            link.target, link.rate = second.port, 12 * MiB
            link.cut_all()
            visit.page.reload()
            visit.wait_for("#send:not([hidden])")
            begin = link.sent
            visit.choose(film, raw)
            for some in (10, 20):
                eventually(lambda: link.sent - begin > some * MiB, "some of the film is sent")
                link.cut_all()
            eventually(lambda: link.sent - begin > 28 * MiB, "more of the film is sent")
            visit.page.reload()
            visit.until("#notices", "film.mov")
            visit.choose(film, raw)
            visit.finish(2)
            require(link.sent - begin < 70 * MiB, f"{link.sent - begin} bytes were sent for 40 MiB")
        require_same({film.name: film, raw.name: theirs, "DSC00001 (2).ARW": raw}, store)
        left = [p for p in (store / ".fullbore").rglob("*") if p.is_file() and p.stat().st_size > MiB]
        require(not left, f"attempts have left {left}")


class Welcome(http.server.BaseHTTPRequestHandler):
    """Answers every request with success, as a network does whose visitors must log in first."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"Welcome")
    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        pass


def portal(browser, folder):
    """Something else answers for a while at the receiver's address: nothing counts as sent by that."""
    film = folder / "film.mov"
    sparse_film(film, 32 * MiB, 13)
    photos = [picture(folder / f"out/{i}.png", 100 * KiB, i) for i in range(5)]
    welcome = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Welcome)
    # The page may close connections before it has the answer.
    welcome.handle_error = lambda *_: None
    threading.Thread(target=welcome.serve_forever, daemon=True).start()
    with share(folder / "in") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film)
            eventually(lambda: link.sent > 12 * MiB, "some of the film is sent")
            link.target = welcome.server_port
            link.cut_all()
            visit.choose(*photos)
            time.sleep(4)
            require("Finished" not in visit.text("body"), "files count as sent that the receiver has not: " + visit.text("body"))
            link.target = server.port
            link.cut_all()
            visit.finish(6)
        require(link.sent < 60 * MiB, f"{link.sent} bytes were sent for 32 MiB")
        require_same({path.name: path for path in [film, *photos]}, folder / "in")
    welcome.shutdown()


def restart(browser, folder):
    """The server is killed and started again; the page goes on by itself."""
    film = folder / "film.mov"
    sparse_film(film, 64 * MiB, 4)
    photos = [picture(folder / f"out/{i}.png", 2 * MiB, i) for i in range(12)]
    with share(folder / "in") as server, Link(server.port, bytes_per_second=10 * MiB) as link:
        with Visit(browser, link.port) as visit:
            visit.choose(film, *photos)
            eventually(lambda: link.sent > 15 * MiB, "some of the files are sent")
            server.kill()
            visit.until("#notices", "does not answer")
            visit.screenshot("desktop-away")
            server.start()
            visit.finish(13, 90)
            require(visit.text("#notices") == "", "a notice of the lost connection stays")
        require(link.sent < 140 * MiB, f"{link.sent} bytes were sent for 88 MiB")
        require_same({path.name: path for path in [film, *photos]}, folder / "in")


def offline(browser, folder):
    """The device loses its network and gets it back."""
    film = folder / "film.mov"
    sparse_film(film, 40 * MiB, 5)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=12 * MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            visit.choose(film)
            eventually(lambda: link.sent > 12 * MiB, "some of the file is sent")
            # Chromium's switch leaves open connections alone, so the link breaks them.
            visit.context.set_offline(True)
            link.is_away = True
            link.cut_all()
            visit.until("#notices", "has no network", 45)
            time.sleep(4)
            link.is_away = False
            visit.context.set_offline(False)
            visit.finish(1, 40)
        require(link.sent < 70 * MiB, f"{link.sent} bytes were sent for 40 MiB")
        require_same({"film.mov": film}, folder / "in")


def tabs(browser, folder):
    """Two tabs send the same files: each file is sent once."""
    film = folder / "film.mov"
    sparse_film(film, 40 * MiB, 6)
    photos = [picture(folder / f"out/{i}.png", MiB, i) for i in range(8)]
    with share(folder / "in") as server, Link(server.port, bytes_per_second=12 * MiB) as link:
        with Visit(browser, link.port) as first, Visit(browser, link.port, context=first.context) as second:
            first.choose(film, *photos)
            eventually(lambda: link.sent > 4 * MiB, "the first tab sends")
            second.choose(film, *photos)
            second.until("#uploads", "Another tab sends this file")
            first.finish(9, 60)
            second.finish(9, 30)
            require(link.sent < 60 * MiB, f"{link.sent} bytes were sent for 48 MiB")
            # The first tab is closed in mid-file: the second one takes over.
            other = folder / "other.mov"
            sparse_film(other, 96 * MiB, 8)
            first.choose(other)
            begin = link.sent
            eventually(lambda: link.sent > begin + 8 * MiB, "the first tab sends")
            second.choose(other)
            second.until("#uploads", "Another tab sends this file")
            # A third tab removes the file from its list, and leaves what the first one has sent.
            third = Visit(browser, link.port, context=first.context)
            third.choose(other)
            third.until("#uploads", "Another tab sends this file")
            third.page.click("button[aria-label='Remove: other.mov']")
            eventually(lambda: third.page.locator("#uploads .row").count() == 0, "the removed row stays")
            third.page.close()
            eventually(lambda: link.sent > begin + 32 * MiB, "the first tab goes on")
            first.page.close()
            second.until("#total-count", r"^Finished: 1\b", 60)
            require(link.sent - begin < 112 * MiB, f"{link.sent - begin} bytes were sent for 96 MiB")
        require_same({path.name: path for path in [film, other, *photos]}, folder / "in")


def frozen(browser, folder):
    """A tab that was frozen, as phones do with hidden ones, leaves its file to the tab that has taken it over."""
    film = folder / "film.mov"
    sparse_film(film, 96 * MiB, 11)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        with Visit(browser, link.port) as first, Visit(browser, link.port, context=first.context) as second:
            first.choose(film)
            eventually(lambda: link.sent > 12 * MiB, "the first tab sends")
            with first.frozen():
                second.choose(film)
                second.until("#uploads", "MB of")
                begin = link.sent
                eventually(lambda: link.sent > begin + 16 * MiB, "the second tab sends")
            first.until("#uploads", "Another tab sends this file")
            requests = first.count_requests()
            second.finish(1)
            first.until("#total-count", "Already there: 1")
            require(len(requests) <= 2, f"the first tab disturbed the other one: {requests}")
            require(link.sent < 130 * MiB, f"{link.sent} bytes were sent for 96 MiB")
        require_same({film.name: film}, folder / "in")


def pause(browser, folder):
    """Pause stops the link, going on sends the rest; a removed file leaves nothing."""
    film, other = folder / "film.mov", folder / "other.mov"
    sparse_film(film, 30 * MiB, 9)
    sparse_film(other, 30 * MiB, 10)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=8 * MiB) as link:
        with Visit(browser, link.port) as visit:
            visit.choose(film, other)
            eventually(lambda: link.sent > 8 * MiB, "some of the files is sent")
            visit.page.click("#pause-all")
            visit.until("#total-rate", "Paused")
            # What the browser had already given to the system may still pass: some MiB, and more slowly on a busy machine.
            link.wait_until_quiet()
            require(link.sent < 32 * MiB, f"a paused page sends: {link.sent} bytes")
            # A finger may tap twice before the row is gone.
            visit.choose(picture(folder / "photo.png", MiB, 1))
            visit.until("#total-count", r"^0 / 3\b")
            visit.page.dblclick("button[aria-label='Remove: photo.png']")
            eventually(lambda: visit.page.locator("#uploads .row").count() == 2, "the row of the removed photo stays")
            visit.until("#total-count", r"^0 / 2 · .* of 62\.9 MB$", 3)
            visit.page.click("#pause-all")
            visit.page.click("button[aria-label='Remove: other.mov']")
            eventually(lambda: visit.page.locator("#uploads .row").count() == 1, "the row of the removed file stays")
            visit.page.click("button[aria-label='Pause: film.mov']")
            visit.until("#uploads", "Paused")
            visit.page.click("button[aria-label='Go on: film.mov']")
            visit.finish(1)
        require(link.sent < 55 * MiB, f"{link.sent} bytes were sent")
        require_same({"film.mov": film}, folder / "in")
        left = [p for p in (folder / "in/.fullbore").rglob("*") if p.is_file() and p.stat().st_size > MiB]
        require(not left, f"the removed upload still has {left}")
