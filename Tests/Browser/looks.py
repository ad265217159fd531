"""How the page looks, in German, in the dark, and on narrow screens."""
from visit import *


def appearance(browser, folder):
    """German, dark, and 320 pixels wide: nothing is cut off, contrast and sizes of buttons are sufficient."""
    for index in range(12):
        picture(folder / f"Bilder/Urlaub {index}.png", 80 * KiB, index)
    films = [folder / f"Ein Film mit einem sehr langen Namen, der nicht in eine Zeile passt {i}.mov" for i in range(4)]
    for index, film in enumerate(films):
        sparse_film(film, 12 * MiB, index)
    pictures = [picture(folder / f"out/IMG_{i:04}.png", 600 * KiB, i + 40) for i in range(6)]
    with share(folder / "Bilder", "--download") as server:
        for name, options in {"dark-phone": dict(PHONE, color_scheme="dark"), "light-desktop": DESKTOP,
                              "dark-desktop": dict(DESKTOP, color_scheme="dark"),
                              "light-narrow": dict(PHONE, viewport={"width": 320, "height": 640})}.items():
            with Link(server.port, bytes_per_second=MiB) as link, Visit(browser, link.port, locale="de-DE", **options) as visit:
                visit.until("h1", "^Senden an Bilder$")
                require(visit.page.evaluate("document.documentElement.lang") == "de", "the language is not told")
                visit.until("#entries", "Urlaub 3")
                visit.choose(*pictures, *films)
                visit.until("#total-rate", "noch etwa")
                visit.until("#total-count", "^[2-6] / ")
                visit.screenshot(name)
                check_appearance(visit, name)
                # Nothing is left for the next look.
                def remove_all():
                    visit.page.evaluate("document.querySelectorAll('#uploads .row').forEach((row) => row.removal.click())")
                    return visit.page.locator("#uploads .row").count() == 0
                eventually(remove_all, lambda: f"removed files stay in the list: {visit.text('#uploads')}")
                for path in (folder / "Bilder").glob("*"):
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
