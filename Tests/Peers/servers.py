"""Servers of other projects, started on 127.0.0.1. Their contents are read without Fullbore."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import time

import configurations
import records
from material import tree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Missing(Exception):
    """The program is not on this machine; the text says how to install it."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def program(name, how):
    path = name if os.path.isabs(name) and os.access(name, os.X_OK) else shutil.which(name)
    if path is None or not os.access(path, os.X_OK):
        raise Missing(f"{os.path.basename(name)} is not installed: {how}")
    return path


def python_tool(name):
    return program(os.path.join(ROOT, ".venv/bin", name), "scripts/bootstrap test")


class Server:
    """A server with its own folder. `prefix` chooses the protocol, `path` is the destination of files."""

    # The name of the program and the protocols in docs/interoperability.md.
    title = ""
    how = "WebDAV"
    prefix = "dav+"
    path = "/"
    arguments = []
    # Options with a wrong password; None: the server requires no password.
    wrong_password = None
    # Whether published files have names and bytes on the server; False for tusd.
    has_names = True
    # Whether a check detects other bytes of the same length without reading them, because the response to an upload
    # names a version.
    tells_versions = True
    needs_pipe_length = False
    # All data is in memory and is lost with the process.
    forgets = False
    # The server replaces existing files whatever the client requested.
    ignores_conditions = False
    # The server cannot delete unfinished uploads.
    keeps_unfinished = False
    slow = False
    # Maps a name to the name under which the server stores it.
    renames = staticmethod(lambda name: name)

    def __init__(self, scratch):
        self.scratch = os.path.join(scratch, self.name)
        self.received = os.path.join(self.scratch, "received")
        os.makedirs(self.received)
        self.port = free_port()
        self.process = None

    name = property(lambda self: type(self).__name__.lower())
    url = property(lambda self: f"{self.prefix}http://127.0.0.1:{self.port}{self.path}")

    def command(self):
        raise NotImplementedError

    def version(self):
        """The version of the program that runs."""
        return records.program_version(self.title)

    def start(self):
        with open(os.path.join(self.scratch, "log"), "ab") as log:
            # The port of a killed server may be in use for another moment.
            end = time.monotonic() + 60
            while True:
                self.process = subprocess.Popen(
                    self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
                if self.answers() or time.monotonic() > end:
                    return
                self.kill()

    def answers(self):
        end = time.monotonic() + 15
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def kill(self):
        """Kills the server with all its processes by SIGKILL."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    def files(self):
        """Digests of the published files by name."""
        return tree(self.received)

    def wipe(self):
        """Removes all received files; the server keeps running."""
        for entry in os.scandir(self.received):
            shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)

    def replace(self, name, data):
        """Changes a file without the server's knowledge."""
        with open(os.path.join(self.received, name), "wb") as file:
            file.write(data)

    def remove(self, name):
        os.unlink(os.path.join(self.received, name))

    def mistyped(self):
        """Destinations that do not accept files."""
        return [f"{self.url}file.jpg/below/"]

    def config(self, text):
        path = os.path.join(self.scratch, "config")
        with open(path, "w") as file:
            file.write(text)
        return path


class Wsgidav(Server):
    title = "wsgidav"

    def command(self):
        return [
            python_tool("wsgidav"), "--host", "127.0.0.1", "--port", str(self.port), "--root", self.received,
            "--auth", "anonymous", "--no-config", "-qq",
        ]


class Rclone(Server):
    title = "rclone serve webdav"
    arguments = ["--header", "Authorization: Basic " + base64.b64encode(b"anna:right").decode()]
    wrong_password = ["--header", "Authorization: Basic " + base64.b64encode(b"anna:wrong").decode()]

    def command(self):
        return [
            program("rclone", "scripts/bootstrap test"), "serve", "webdav", self.received, "--addr",
            f"127.0.0.1:{self.port}", "--config", os.path.join(self.scratch, "none"), "--user", "anna", "--pass", "right",
            # Otherwise the server does not see external changes for five minutes.
            "--dir-cache-time", "0s",
        ]


class Nginx(Server):
    title = "nginx"
    methods = "PUT DELETE MKCOL COPY MOVE"

    def command(self):
        path = self.config(configurations.nginx(self.scratch, self.received, self.port, self.methods))
        return [program("nginx", "scripts/bootstrap test"), "-c", path, "-p", self.scratch]


class NginxPut(Nginx):
    """Supports only PUT and DELETE, and replaces existing files."""

    how = "PUT"
    prefix = "put+"
    methods = "PUT DELETE"
    tells_versions = False


class Apache(Server):
    title = "Apache"

    def command(self):
        for path in (os.path.dirname(self.scratch), self.scratch, self.received):
            os.chmod(path, 0o777)  # the server's workers do not run as root
        path = self.config(configurations.apache(self.scratch, self.received, self.port))
        return [program("apache2", "scripts/bootstrap test"), "-f", path, "-DFOREGROUND"]

    def wipe(self):
        super().wipe()
        os.chmod(self.received, 0o777)
