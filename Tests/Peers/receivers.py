"""Tests of `fullbore serve` behind proxies and with clients of other projects."""

import os
import subprocess

import configurations
import material
import records
from checks import Failed, require
from servers import Missing, Server, free_port, program
from unpackaged import SHARED, shared_version


class Receiver(Server):
    """`fullbore serve` itself."""

    title = "our server"
    how = "tus"
    prefix = "tus+"
    binary = None
    options = ()

    def command(self):
        return [self.binary, "serve", self.received, "--listen", f"127.0.0.1:{self.inner_port}", *self.options]

    def version(self):
        return records.printed_version([self.binary, "--version"])

    inner_port = property(lambda self: self.port)

    def files(self):
        return {path: sha for path, sha in super().files().items() if not path.startswith(".fullbore/")}

    def wipe(self):
        for name in os.listdir(self.received):
            if name != ".fullbore":
                subprocess.run(["rm", "-rf", "--", os.path.join(self.received, name)], check=True)


class Proxied(Receiver):
    """A third-party proxy in front of the server. `serve` is told the proxy's names (--host) if it requires them."""

    def __init__(self, scratch):
        super().__init__(scratch)
        self.inner = free_port()
        self.front = None
        said = subprocess.run([self.binary, "serve", "--help-all"], capture_output=True, text=True).stdout
        self.options = ("--host", "127.0.0.1") if "--host" in said else ()

    inner_port = property(lambda self: self.inner)

    def start(self):
        proxy = self.proxy()
        outer, self.port = self.port, self.inner
        super().start()
        self.port = outer
        with open(os.path.join(self.scratch, "proxy-log"), "ab") as log:
            self.front = subprocess.Popen(
                proxy, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.scratch,
                env=os.environ | {"HOME": self.scratch})
        behind, self.process = self.process, self.front
        if not self.answers():
            raise RuntimeError(f"{self.name} does not start; see {self.scratch}/proxy-log")
        self.process = behind

    def kill(self):
        super().kill()
        if self.front is not None:
            self.front.kill()
            self.front.wait()
            self.front = None


class Haproxy(Proxied):
    title = "haproxy"
    how = "tus, as a proxy before our server"

    def version(self):
        return records.program_version("haproxy")

    def proxy(self):
        path = self.config(configurations.haproxy(self.port, self.inner))
        return [program("haproxy", "apt-get install haproxy"), "-f", path, "-db"]


class Caddy(Proxied):
    title = "Caddy"
    how = "tus, as a proxy before our server"

    def version(self):
        return records.program_version("Caddy")

    def proxy(self):
        path = self.config(configurations.caddy(self.port, self.inner))
        return [program("caddy", "apt-get install caddy"), "run", "--adapter", "caddyfile", "--config", path]


class TusJS:
    """A client, which has one check."""

    title = "tus-js-client"
    how = "a client in Node, which sends to our server"

    @staticmethod
    def version():
        return shared_version("tus-js-client")


SCRIPT = """
const tus = require(process.argv[1]), fs = require('fs')
const [file, endpoint, name, stopAt, previous] = process.argv.slice(2)
const upload = new tus.Upload(fs.createReadStream(file), {
  endpoint, uploadUrl: previous || undefined, uploadSize: fs.statSync(file).size, chunkSize: 1 << 20, retryDelays: [0, 100],
  metadata: { filename: name },
  onProgress(sent) { if (Number(stopAt) && sent > Number(stopAt)) { console.log(upload.url); process.exit(9) } },
  onError(error) { console.error(String(error)); process.exit(1) },
  onSuccess() { console.log(upload.url); process.exit(0) },
})
upload.start()
"""


def tus_js_client(receiver, scratch):
    """tus-js-client in Node sends to `fullbore serve`, is killed, and resumes."""
    library = os.path.join(SHARED, "tus.node.cjs")
    if not os.path.exists(library):
        raise Missing(f"{library} is not there, which no package has")
    node = program("node", "apt-get install nodejs, 18 or later")
    file = os.path.join(scratch, "tus-js.mov")
    material.write(file, 12 << 20)
    endpoint = f"http://127.0.0.1:{receiver.port}/"

    def run(name, stop_at="0", previous=""):
        return subprocess.run(
            [node, "-e", SCRIPT, library, file, endpoint, name, stop_at, previous], capture_output=True, text=True,
            timeout=120)

    whole = run("plain \u00e4.mov")
    require(whole.returncode == 0, f"a plain upload: {whole.stderr[:300]}")
    stopped = run("stopped.mov", str(5 << 20))
    require(stopped.returncode == 9, f"it was to stop in the middle: {stopped.returncode} {stopped.stderr[:300]}")
    gone_on = run("stopped.mov", "0", stopped.stdout.strip())
    require(gone_on.returncode == 0, f"going on after a kill: {gone_on.stderr[:300]}")
    found = receiver.files()
    wanted = material.tree(scratch)["tus-js.mov"]
    for name in ("plain \u00e4.mov", "stopped.mov"):
        if found.get(name) != wanted:
            raise Failed(f"{name} is not there as it was sent: {sorted(found)}")
