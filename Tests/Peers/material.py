"""Test data for these checks: a folder of difficult names, large files, and digests of received files."""

import hashlib
import os
import random

HARD_NAMES = [
    "spaces in the name.jpg", " begins with a space.jpg", "ends with a space ", "100% plus+and&and=;,.jpg",
    "percent %41%2F%2e%2e.jpg", "hash #1.jpg", "question?.jpg", "colon:star*<pipe>|.jpg", 'quote " and \'.jpg',
    "back\\slash.jpg", "tab\there.jpg", "e\u0301 decomposed.jpg", "\u00e9 composed.jpg", "\U0001f3ac film.mov",
    "\u65e5\u672c\u8a9e.jpg", "dot at the end.", "..two dots.jpg", ".hidden.jpg", "-begins-with-a-dash.jpg",
    "~tilde.jpg", "$dollar and `tick`.jpg", "[brackets] {braces}.jpg", "new.part", "n" * 200 + ".jpg",
    "\u00e4" * 100 + ".jpg", "UPPER.JPG", "upper.jpg", "at @ sign.jpg", "semi;colon.jpg", "caret^.jpg",
]


def content(name, size):
    """Returns the same bytes for the same name and size in every run."""
    return random.Random(f"{name}/{size}").randbytes(size)


def write(path, size, seed=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(content(f"{os.path.basename(path)}{seed}{start}", min(1 << 20, size - start)))


def gallery(folder, count):
    """Creates `count` files: the difficult names first, then plain ones in folders; two of the files are empty."""
    names = HARD_NAMES[:count]
    while len(names) < count:
        number = len(names)
        names.append(f"2026/M\u00e4i {number % 7}/sub folder/IMG {number}.jpg")
    for number, name in enumerate(names):
        write(os.path.join(folder, name), 0 if number in (5, 50) else 200 + 97 * number)
    return names


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tree(folder):
    """Digests by path in `folder`."""
    found = {}
    for root, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(root, file)
            sha = hashlib.sha256()
            with open(path, "rb") as data:
                while block := data.read(1 << 20):
                    sha.update(block)
            found[os.path.relpath(path, folder)] = sha.hexdigest()
    return found


def is_servers(path):
    """A temporary name of the server's own (Apache's), which remains if the server is killed."""
    return os.path.basename(path).startswith(".davfs.tmp")


def is_ours(path):
    """A temporary name of Fullbore's."""
    return os.path.basename(path).startswith(".fullbore-")
