"""Servers that are in no package. They are in a folder beside the checkout, with a script that starts them."""

import base64
import json
import os
import re
import signal
import subprocess
import time
import unicodedata
from urllib.parse import quote

from material import tree
from servers import ROOT, Missing, Server, program

SHARED = os.environ.get("FULLBORE_SHARED_PEERS", os.path.join(os.path.dirname(ROOT), "shared", "peers"))


def shared_version(name):
    """The version that the page of the shared folder names: these builds do not tell it."""
    with open(os.path.join(SHARED, "README.md")) as file:
        return re.search(rf"\b{re.escape(name)} (\d[\d.]*)", file.read())[1]


class Nextcloud(Server):
    title = "Nextcloud"
    how = "WebDAV, large files in chunks"
    path = "/remote.php/dav/files/anna/"
    login = base64.b64encode(b"anna:Kept-4711-pass").decode()
    arguments = ["--header", f"Authorization: Basic {login}"]
    wrong_password = ["--header", "Authorization: Basic " + base64.b64encode(b"anna:wrong").decode()]
    needs_pipe_length = True
    slow = True
    renames = staticmethod(lambda name: unicodedata.normalize("NFC", name))

    def start(self):
        script = os.path.join(SHARED, "start")
        if not os.path.exists(script):
            raise Missing(f"{SHARED} is not there, which no package has")
        program("php", "scripts/bootstrap peers")
        end = time.monotonic() + 60
        while True:
            started = subprocess.run(
                [script, "nextcloud", os.path.join(self.scratch, "run"), str(self.port)], capture_output=True, text=True)
            if started.returncode == 0:
                break
            if time.monotonic() > end:
                raise RuntimeError(started.stderr)
        self.pid = int(started.stdout)
        self.received = os.path.join(self.scratch, "run/nextcloud/data/anna/files")

    def kill(self):
        if getattr(self, "pid", None):
            os.killpg(self.pid, signal.SIGKILL)
            self.pid = None

    def version(self):
        said = subprocess.run(
            ["curl", "-sf", f"http://127.0.0.1:{self.port}/status.php"], check=True, capture_output=True)
        return json.loads(said.stdout)["versionstring"]

    def mistyped(self):
        origin = f"http://127.0.0.1:{self.port}"
        return super().mistyped() + [
            f"dav+{origin}/remote.php/dav/files/nobody/", f"dav+{origin}/index.php/nothing/", f"put+{origin}/", f"{origin}/"]

    def wipe(self):
        for name in os.listdir(self.received) if os.path.isdir(self.received) else []:
            self.curl("-X", "DELETE", self.place(name))

    def replace(self, name, data):
        subprocess.run(self.curl_command("-T", "-", self.place(name)), input=data, check=True, capture_output=True)

    def remove(self, name):
        self.curl("-X", "DELETE", self.place(name))

    def place(self, name):
        return f"http://127.0.0.1:{self.port}{self.path}{quote(name)}"

    def curl_command(self, *arguments):
        return ["curl", "-sf", "-m", "120", "-H", f"Authorization: Basic {self.login}", *arguments]

    def curl(self, *arguments):
        subprocess.run(self.curl_command(*arguments), check=True, capture_output=True)


class Tusd(Server):
    title = "tusd"
    how = "tus"
    prefix = "tus+"
    path = "/files/"
    has_names = False

    def command(self):
        archive = os.path.join(SHARED, "tusd.xz")
        if not os.path.exists(archive):
            raise Missing(f"{archive} is not there, which no package has")
        binary = os.path.join(self.scratch, "tusd")
        if not os.path.exists(binary):
            with open(binary, "wb") as file:
                subprocess.run(["xz", "-dc", archive], stdout=file, check=True)
            os.chmod(binary, 0o755)
        return [binary, "-host", "127.0.0.1", "-port", str(self.port), "-upload-dir", self.received]

    def version(self):
        return shared_version("tusd")

    def mistyped(self):
        origin = f"http://127.0.0.1:{self.port}"
        return [f"put+{origin}/", f"{origin}/", f"tus+{origin}/nothing/"]

    def files(self):
        """Digests by the path that the client sent; unfinished uploads are left out."""
        found = {}
        digests = tree(self.received)
        for name in digests:
            if not name.endswith(".info"):
                continue
            with open(os.path.join(self.received, name)) as file:
                info = json.load(file)
            data = name.removesuffix(".info")
            whole = os.path.join(self.received, data)
            if info.get("IsPartial") or not os.path.exists(whole) or os.path.getsize(whole) != info["Size"]:
                continue
            told = info["MetaData"]
            found[told.get("relativePath", told.get("filename", data))] = digests[data]
        return found
