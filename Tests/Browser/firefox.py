"""The main story in Firefox, which is driven by its own protocol, Marionette: playwright needs a newer one, or its own build."""
import json, subprocess

from stories import check_card, make_card
from visit import *

FIREFOX = os.environ.get("FULLBORE_FIREFOX", "/usr/bin/firefox-esr")
# The names of the tests' servers are loopback.
PREFERENCES = {"network.dns.localDomains": HOST, "intl.accept_languages": "de-DE, de", "datareporting.policy.dataSubmissionEnabled": False,
               "app.update.auto": False, "browser.shell.checkDefaultBrowser": False, "network.captive-portal-service.enabled": False,
               "network.connectivity-service.enabled": False}


class Firefox:
    """A Firefox without windows, with one tab."""

    def __init__(self, folder):
        profile, port = folder / "profile", free_port()
        profile.mkdir()
        preferences = PREFERENCES | {"marionette.port": port}
        (profile / "user.js").write_text("".join(f"user_pref({json.dumps(n)}, {json.dumps(v)});\n" for n, v in preferences.items()))
        environment = {"HOME": str(folder), "MOZ_HEADLESS": "1", "MOZ_HEADLESS_WIDTH": "360", "MOZ_HEADLESS_HEIGHT": "740"}
        self.process = Process([FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile], port,
                               folder / "firefox.txt", environment=environment, seconds=60)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.stream, self.number = self.socket.makefile("rb"), 0
        self.receive()
        self.command("WebDriver:NewSession", capabilities={"alwaysMatch": {"unhandledPromptBehavior": "accept"}})

    def receive(self):
        """A message begins with its length in decimal digits and a colon."""
        digits = b""
        while (digit := self.stream.read(1)) != b":":
            require(digit, "Firefox has closed the connection")
            digits += digit
        return json.loads(self.stream.read(int(digits)))

    def command(self, name, **parameters):
        self.number += 1
        text = json.dumps([0, self.number, name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.receive()
        require(error is None, f"{name}: {error and error.get('message')}")
        return result

    def evaluate(self, expression, *arguments):
        script = f"return ({expression})(...arguments)"
        return self.command("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]

    def open(self, url):
        self.command("WebDriver:Navigate", url=url)

    def reload(self):
        self.command("WebDriver:Refresh")

    def choose(self, *paths):
        found = self.command("WebDriver:FindElement", using="css selector", value="#files-input")["value"]
        self.command("WebDriver:ElementSendKeys", id=next(iter(found.values())), text="\n".join(str(path) for path in paths))

    def until(self, selector, pattern, seconds=30):
        """Waits until the text of the element matches; returns the text."""
        def text():
            return (self.evaluate("s => document.querySelector(s)?.innerText ?? ''", selector)).replace("\xa0", " ")
        return eventually(lambda: (found := text()) and re.search(pattern, found) and found,
                          lambda: f"{pattern!r} in {selector}, which says {text()!r}", seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.__exit__()


def firefox(browser, folder):
    """Firefox sends 50 photos and a film over a link that breaks, and goes on after a reload."""
    if not os.access(FIREFOX, os.X_OK):
        raise Skipped(f"there is no {FIREFOX}: apt-get install firefox-esr, or FULLBORE_FIREFOX")
    sent = make_card(folder, 128 * MiB)
    film = folder / "second.mov"
    sparse_film(film, 48 * MiB, 3)
    with share(folder / "in", "--download") as server, Link(server.port, cut_mean=20 * MiB) as link:
        with Firefox(folder) as page:
            page.open(f"http://{HOST}:{link.port}/#{CODE}")
            page.until("h1", "^Senden an in$")
            require("#" not in page.evaluate("() => location.href"), "the code stays in the address")
            page.evaluate("""() => {
              window.violations = [];
              document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
            }""")
            page.choose(*sent)
            page.until("#total-count", r"^Fertig: 51\b", 240)
            page.until("#entries", "IMG_0000.png")
            require(page.evaluate("() => violations") == [], "the page violates its own policy")
        check_card(link, sent, folder / "in")
    with share(folder / "again") as server, Link(server.port, bytes_per_second=12 * MiB) as link:
        (folder / "other").mkdir()
        with Firefox(folder / "other") as page:
            page.open(f"http://{HOST}:{link.port}/#{CODE}")
            page.until("h1", "^Senden an again$")
            page.choose(film)
            eventually(lambda: link.sent > 24 * MiB, "half of the film is sent")
            page.reload()
            page.until("#notices", "second.mov")
            before = link.sent
            page.choose(film)
            page.until("#total-count", r"^Fertig: 1\b", 60)
            require(link.sent - before < 40 * MiB, f"{link.sent - before} bytes were sent after the reload, of {film.stat().st_size}")
        require_same({"second.mov": film}, folder / "again")
