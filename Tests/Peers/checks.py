"""Checks that Fullbore must pass with each server. A check raises Failed, or Skipped with the reason, or returns."""

import os
import time

import material
from material import digest, is_ours, is_servers, tree


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Bench:
    """A server, the Fullbore client that pushes to it, and the size of the pushed data."""

    def __init__(self, server, fullbore, scratch, count, large):
        self.server, self.fullbore, self.scratch = server, fullbore, scratch
        self.count, self.large = count, large
        self.folders = 0

    def fresh(self):
        """Starts with an empty server, an empty journal and an empty source folder."""
        self.server.wipe()
        self.fullbore.new_journal()
        self.folders += 1
        folder = os.path.join(self.scratch, self.server.name, f"from-{self.folders}")
        os.makedirs(folder)
        return folder

    def push(self, *arguments, **more):
        return self.fullbore.push(*self.server.arguments, *arguments, **more)

    def expect_same(self, folder, push, beneath=""):
        """Either exit 0 and every byte at the server, or exit 1 and a message for every missing file."""
        sent, there = tree(folder), self.published()
        places = {path: beneath + self.server.renames(path) for path in sent}
        for path, sha in sent.items():
            place = places[path]
            if place in there:
                require(there[place] == sha, f"{path!r} has other bytes at the server; {push}")
            else:
                require(path in push.failed, f"{path!r} is not at the server, and no message names it; {push}")
        # Some servers cut names and report success. The message has reported this.
        refused = {sha for path, sha in sent.items() if path in push.failed}
        strange = {path for path in set(there) - set(places.values()) if there[path] not in refused}
        require(not strange, f"at the server are also {sorted(strange)[:5]}; {push}")
        # The server may not find a file that is on its disk: rclone replaces tabs in names when it reads.
        missing = [path for path in sent if places[path] not in there or path in push.failed]
        require(push.status == (1 if missing else 0), f"{len(missing)} are missing; {push}")
        return missing

    def published(self):
        return {path: sha for path, sha in self.server.files().items() if not is_ours(path) and not is_servers(path)}

    def leftovers(self):
        return [path for path in self.server.files() if is_ours(path)]


def require(condition, text):
    if not condition:
        raise Failed(text)


def folder_of_hard_names(bench):
    folder = bench.fresh()
    material.gallery(folder, bench.count)
    push = bench.push("--hidden", "--retries", "3", folder + "/", bench.server.url)
    missing = bench.expect_same(folder, push)
    # Each server refuses some names; all accept plain ones.
    plain = [name for name in missing if name not in material.HARD_NAMES]
    require(not plain and len(missing) <= 8, f"{len(missing)} were refused: {missing[:8]}; {push}")
    left = bench.leftovers()
    require(not left, f"left at the server: {left[:5]}")
    again = bench.push("--hidden", "--retries", "3", folder + "/", bench.server.url)
    require(again.status == push.status, f"the second time: {again}")
    bench.expect_same(folder, again)
    return f"{len(missing)} names refused by the server" if missing else ""


def large_file(bench):
    folder = bench.fresh()
    material.write(f"{folder}/film.mov", bench.large)
    bench.expect_same(folder, bench.push(f"{folder}/", bench.server.url))


def pipe(bench):
    folder = bench.fresh()
    material.write(f"{folder}/film.mov", 20 << 20)
    room = ["--spool-memory", "32M"] if bench.server.needs_pipe_length else []
    with open(f"{folder}/film.mov") as source:
        push = bench.push(*room, "--name", "film.mov", "-", bench.server.url, stdin=source)
    bench.expect_same(folder, push)


def killed_client(bench):
    folder = bench.fresh()
    material.gallery(folder, bench.count // 3)
    material.write(f"{folder}/film.mov", bench.large // 2)
    slow = ["--bwlimit", "8M", "--hidden", *bench.server.arguments, folder + "/", bench.server.url]
    kills = sum(bench.fullbore.killed_push(*slow, after=after) for after in (0.5, 1, 1.5, 2))
    require(kills > 0, "it was never under way when it was to be killed")
    push = bench.push("--hidden", "--retries", "3", folder + "/", bench.server.url)
    bench.expect_same(folder, push)
    time.sleep(1)
    left = bench.leftovers()
    require(not left, f"left at the server after {kills} kills: {left[:5]}")


def aborted(bench):
    if bench.server.keeps_unfinished:
        raise Skipped("it cannot delete an upload that is unfinished")
    folder = bench.fresh()
    material.gallery(folder, 40)
    material.write(f"{folder}/film.mov", bench.large // 2)
    slow = ["--bwlimit", "4M", "--hidden", *bench.server.arguments, folder + "/", bench.server.url]
    bench.fullbore.killed_push(*slow, after=1.5)
    abort = bench.fullbore.run("abort", *bench.server.arguments, "--all")
    require(abort.status == 0, f"abort --all: {abort}")
    time.sleep(1)
    left = bench.leftovers()
    require(not left, f"left at the server after abort --all: {left[:5]}")


def killed_server(bench):
    if bench.server.forgets:
        raise Skipped("it has everything in memory")
    folder = bench.fresh()
    material.gallery(folder, 60)
    material.write(f"{folder}/film.mov", bench.large // 2)
    process = bench.fullbore.begin(
        "push", "--json", "--hidden", "--bwlimit", "16M", *bench.server.arguments, folder + "/", bench.server.url)
    time.sleep(1)
    bench.server.kill()
    time.sleep(1)
    bench.server.start()
    process.communicate(timeout=900)
    push = bench.push("--hidden", "--retries", "3", folder + "/", bench.server.url)
    bench.expect_same(folder, push)


def wrong_password(bench):
    if bench.server.wrong_password is None:
        raise Skipped("it asks for no password here")
    folder = bench.fresh()
    material.write(f"{folder}/a.jpg", 1000)
    push = bench.fullbore.push(*bench.server.wrong_password, f"{folder}/a.jpg", bench.server.url)
    require(push.status == 3 and "401" in push.errors + push.output, f"wanted exit 3 and 401; {push}")
    require(not bench.published(), "something was published")


def other_bytes_are_kept(bench):
    if not bench.server.has_names:
        raise Skipped("it keeps uploads by number, and has no names")
    if bench.server.ignores_conditions:
        raise Skipped("it ignores the condition that a name must be free")
    folder = bench.fresh()
    for size in (1000, 6 << 20):
        bench.server.replace(f"{size}.jpg", material.content("other", size))
        material.write(f"{folder}/{size}.jpg", size)
    push = bench.push(f"{folder}/", bench.server.url)
    there = bench.published()
    for size in (1000, 6 << 20):
        kept = there.get(f"{size}.jpg") == digest(material.content("other", size))
        require(kept, f"{size}.jpg was replaced without --overwrite; {push}")
    require(push.status == 1, f"wanted exit 1; {push}")
    push = bench.push("--overwrite", f"{folder}/", bench.server.url)
    bench.expect_same(folder, push)


def check_sees_what_was_lost(bench):
    if not bench.server.has_names:
        raise Skipped("it keeps uploads by number, and has no names")
    folder = bench.fresh()
    for name in ("lost.jpg", "changed.jpg", "same.jpg"):
        material.write(f"{folder}/{name}", 5000)
    push = bench.push(f"{folder}/", bench.server.url)
    bench.expect_same(folder, push)
    bench.server.remove("lost.jpg")
    time.sleep(1.1)  # some servers report modification times in whole seconds
    bench.server.replace("changed.jpg", material.content("changed", 5000))
    push = bench.push("--check", f"{folder}/", bench.server.url)
    there = bench.published()
    require(there.get("lost.jpg") == tree(folder)["lost.jpg"], f"the file that was lost is not there again; {push}")
    if not bench.server.tells_versions:
        # The check reports that it compared only lengths; reading back finds the difference.
        require(push.status == 0, f"wanted exit 0; {push}")
        push = bench.push("--check", "--verify", f"{folder}/", bench.server.url)
    if bench.server.ignores_conditions:
        # The change was detected, and the file was sent again, which replaced it.
        require(push.status == 0 and "changed.jpg" in push.output, f"other bytes of the same length were not seen; {push}")
        return
    require(push.status == 1 and "changed.jpg" in push.failed, f"other bytes of the same length were not seen; {push}")
    push = bench.push("--check", "--overwrite", f"{folder}/", bench.server.url)
    bench.expect_same(folder, push)


def missing_folder(bench):
    if not bench.server.has_names:
        raise Skipped("it keeps uploads by number, and has no names")
    folder = bench.fresh()
    material.write(f"{folder}/a.jpg", 1000)
    material.write(f"{folder}/film.mov", 6 << 20)
    push = bench.push(f"{folder}/", f"{bench.server.url}new folder/2026/")
    if push.status == 3 and not bench.published():
        return "refused as a whole"
    bench.expect_same(folder, push, "new folder/2026/")
    return ""


def mistyped_path(bench):
    """No server there accepts uploads: exit 0 would mean that the file is stored."""
    folder = bench.fresh()
    material.write(f"{folder}/a.jpg", 1000)
    if bench.server.has_names:
        bench.server.replace("file.jpg", b"a file, and no folder")
    before = bench.published()
    for url in bench.server.mistyped():
        push = bench.push("--retries", "1", f"{folder}/a.jpg", url)
        require(push.status != 0, f"{url}: exit 0, and nothing is there; {push}")
    require(bench.published() == before, "something was published")


ALL = [
    ("folder of hard names", folder_of_hard_names), ("large file", large_file), ("pipe", pipe),
    ("client killed", killed_client), ("abort after a kill", aborted), ("server killed", killed_server),
    ("wrong password", wrong_password), ("other bytes, and --overwrite", other_bytes_are_kept),
    ("--check", check_sees_what_was_lost), ("missing folder", missing_folder), ("mistyped path", mistyped_path),
]
