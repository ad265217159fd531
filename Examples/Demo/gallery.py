"""The gallery that the demo sends when none is given: PNG pictures of several sizes, and one large film."""

import random
import struct
import zlib

MIB = 1 << 20

# How many pictures there are of each width and height.
SIZES = [(12, 160, 110), (10, 320, 240), (6, 640, 427), (4, 800, 600), (3, 1024, 683), (2, 1280, 853), (1, 1600, 1067),
         (1, 2048, 1536), (1, 2000, 1740)]


class Gallery:
    """Makes it in a new folder. The same seed makes the same bytes."""

    EXPECTED_IMAGES = sum(count * (3 * width * height + 8192) for count, width, height in SIZES)

    def __init__(self, folder, film_size, seed=1):
        generator = random.Random(seed)
        sizes = [(width, height) for count, width, height in SIZES for _ in range(count)]
        generator.shuffle(sizes)
        for name in ("2024/Küste", "2024/Sommer", "Portraits"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for index, (width, height) in enumerate(sizes):
            place = ("", "2024/Sommer/", "Portraits/", "2024/Küste/")[index % 4]
            name = "Möwe über dem Meer.png" if index == 7 else f"IMG_{1001 + index}.png"
            (folder / f"{place}{name}").write_bytes(picture(width, height, generator))
        self.images = len(sizes)
        film = folder / "Film 0001.mp4"
        write_film(film, film_size)
        self.film_on_disk = film.stat().st_blocks * 512


def picture(width, height, generator):
    """A PNG of a vertical gradient with a grain as film has it. It is stored without compression."""
    first, last = ([generator.randrange(20, 230) for _ in range(3)] for _ in range(2))
    grain = int.from_bytes(b"\x07" * 3 * width)
    rows = bytearray()
    for y in range(height):
        colour = bytes(start + (end - start) * y // height for start, end in zip(first, last))
        noise = int.from_bytes(generator.randbytes(3 * width)) & grain
        rows += b"\0" + (int.from_bytes(colour * width) + noise).to_bytes(3 * width)

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, level=0))
            + chunk(b"IEND", b""))


def stamp(offset):
    return b"FULLBORE" + struct.pack(">Q", offset)


def write_film(path, size):
    """The two boxes that every player looks for, and frames that are empty but for a stamp at every MiB with its offset:
    a misplaced block shows, and the file takes next to no disk."""
    kind = struct.pack(">I4s4sI8s", 24, b"ftyp", b"isom", 0x200, b"isommp41")
    with open(path, "wb") as file:
        file.write(kind + struct.pack(">I4sQ", 1, b"mdat", size - len(kind)))
        for offset in range(MIB, size - 15, MIB):
            file.seek(offset)
            file.write(stamp(offset))
        file.truncate(size)


def check_stamps(path):
    """Raises at the first stamp that is not where it belongs."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        for offset in range(MIB, size - 15, MIB):
            file.seek(offset)
            if (found := file.read(16)) != stamp(offset):
                raise ValueError(f"{path}: at byte {offset} stands another block: {found.hex()}")
