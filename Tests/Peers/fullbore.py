"""Fullbore's command line as a user runs it."""

import json
import os
import signal
import subprocess
import time


class Push:
    """The result of one run."""

    def __init__(self, status, output, errors):
        self.status, self.output, self.errors = status, output, errors
        self.lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    @property
    def failed(self):
        """Messages of the failed files, by path."""
        return {line.get("path", "?"): line.get("message", "") for line in self.lines if line.get("event") == "failed"}

    def __str__(self):
        said = [f"{path}: {message}" for path, message in list(self.failed.items())[:3]]
        said += self.errors.strip().splitlines()[:3]
        return f"exit {self.status}; {' / '.join(said)}"[:600]


class Fullbore:
    def __init__(self, binary, scratch, environment=None):
        self.binary = binary
        self.scratch = scratch
        self.journals = 0
        self.environment = {
            key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy") and "AWS_" not in key}
        self.environment.update(environment or {})
        self.new_journal()

    def new_journal(self):
        """Starts again without a journal, like another machine."""
        self.journals += 1
        self.environment["FULLBORE_JOURNAL"] = os.path.join(self.scratch, f"journal-{self.journals}.sqlite")

    def begin(self, *arguments, **more):
        return subprocess.Popen(
            [self.binary, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=more.pop("stdin", subprocess.DEVNULL), text=True, errors="replace", **more)

    def run(self, *arguments, limit=900, **more):
        process = self.begin(*arguments, **more)
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            errors += f"\nkilled after {limit} s"
        return Push(process.returncode, output, errors)

    def push(self, *arguments, **more):
        return self.run("push", "--json", *arguments, **more)

    def killed_push(self, *arguments, after):
        """Starts a push that gets SIGKILL after this many seconds. Returns False if it had ended before."""
        process = self.begin("push", "--json", *arguments)
        time.sleep(after)
        is_running = process.poll() is None
        if is_running:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        return is_running
