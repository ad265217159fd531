"""What only a phone has: a screen that goes dark, and a camera."""
from visit import *

# Keeps the wake locks that the page gets.
KEEP_LOCKS = """() => {
  window.locks = [];
  if (!navigator.wakeLock) return;
  const request = navigator.wakeLock.request.bind(navigator.wakeLock);
  navigator.wakeLock.request = async (kind) => {
    const lock = await request(kind);
    window.locks.push(lock);
    return lock;
  };
}"""


def awake(browser, folder):
    """The screen stays on while files are sent, and no longer; without HTTPS, where no page can do that, the page says so."""
    film = folder / "film.mov"
    sparse_film(film, 12 * MiB, 1)
    with share(folder / "in") as server, Link(server.port, bytes_per_second=4 * MiB) as link:
        # A browser takes a page of this computer for as safe as one with HTTPS.
        with Visit(browser, link.port, host="localhost", **PHONE) as visit:
            require(visit.page.evaluate("isSecureContext && 'wakeLock' in navigator"), "this browser has no wake locks")
            visit.page.evaluate(KEEP_LOCKS)
            require(visit.page.evaluate("locks.length") == 0, "the screen is kept on before anything is sent")
            visit.choose(film)
            eventually(lambda: visit.page.evaluate("locks.map((lock) => `${lock.type} ${lock.released}`)") == ["screen false"],
                       lambda: f"locks while a film is sent: {visit.page.evaluate('locks.length')}")
            visit.finish(1)
            eventually(lambda: visit.page.evaluate("locks.every((lock) => lock.released)"), "the screen is kept on after the last file")
            require("Keep the screen on" not in visit.text("#notices"), "the page asks for what it does itself")
    with share(folder / "other") as server, Link(server.port, bytes_per_second=4 * MiB) as link:
        with Visit(browser, link.port, **PHONE) as visit:
            require(visit.page.evaluate("!isSecureContext"), "this page has a secure context")
            visit.choose(film)
            visit.until("#notices", "Keep the screen on and this page open")
            visit.finish(1)
            eventually(lambda: "screen" not in visit.text("#notices"), "the page still asks after the last file")


def camera(browser, folder):
    """A phone takes a photograph and sends it at once; a computer is not offered its camera."""
    photo = picture(folder / "image.png", 100 * KiB, 1)
    with share(folder / "in") as server:
        with Visit(browser, server.port, **PHONE) as visit:
            with visit.page.expect_file_chooser() as chooser:
                visit.page.tap("#take-photo")
            opened = chooser.value.element.evaluate("e => [e.id, e.getAttribute('capture'), e.accept]")
            require(opened == ["camera-input", "environment", "image/*,video/*"], f"the button opens {opened}")
            chooser.value.set_files(str(photo))
            visit.finish(1)
        with Visit(browser, server.port) as visit:
            require(not visit.page.is_visible("#take-photo"), "a computer is offered a camera")
    require_same({"image.png": photo}, folder / "in")
