#!/usr/bin/env python3
"""Memory of `fullbore serve --to s3://…` while many uploads are under way.

    Benchmarks/bucket.py PROGRAM [--uploads 200] [--megabytes 6]

The S3 server is in this process: it takes every body and discards it. All clients send together, a piece each in turn, so
that every upload is under way until the last piece. Printed are the resident memory and the threads of the server before
the first upload, in their midst and at the peak, and the CPU time that it took.
"""

import argparse
import asyncio
import os
import subprocess
import tempfile

PIECE = 64 << 10


class Bucket:
    """An S3 server that keeps nothing."""

    def __init__(self):
        self.parts = 0
        self.objects = 0

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                method, target = lines[0].split(" ")[:2]
                fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                left = int(fields.get("content-length", 0))
                if fields.get("expect") == "100-continue":
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                while left:
                    left -= len(await reader.read(min(left, PIECE)))
                self.answer(writer, method, target)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, writer, method, target):
        status, body, tag = 200, "", ""
        if method == "HEAD":
            status = 404
        elif method == "DELETE":
            status = 204
        elif method == "GET":
            body = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        elif method == "POST" and "uploads=" in target:
            body = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
        elif method == "POST":
            self.objects += 1
            body = "<CompleteMultipartUploadResult><ETag>&quot;x&quot;</ETag></CompleteMultipartUploadResult>"
        else:
            self.parts += 1
            tag = 'ETag: "0123456789abcdef0123456789abcdef"\r\n'
        length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
        writer.write(f"HTTP/1.1 {status} X\r\n{tag}{length}\r\n{body}".encode())


def status(pid):
    """Bytes and counts from /proc."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    words = {name: int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM", "RssAnon", "Threads")}
    with open(f"/proc/{pid}/stat") as file:
        ticks = file.read().rsplit(")", 1)[1].split()
    words["cpu"] = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return words


def show(what, pid):
    now = status(pid)
    print(
        f"{what:12} {now['VmRSS'] / 1024:7.1f} MiB resident, {now['RssAnon'] / 1024:6.1f} MiB of it its own, "
        f"{now['VmHWM'] / 1024:6.1f} MiB at the peak, {now['Threads']} threads, {now['cpu']:.1f} s CPU"
    )


async def send(number, port, length, barrier, results):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=PIECE)
    writer.write(f"PUT /file-{number} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
    piece, sent = bytes(PIECE), 0
    while sent < length:
        count = min(PIECE, length - sent)
        writer.write(piece[:count])
        await writer.drain()
        sent += count
        await barrier(sent)
    results.append(await reader.readline())
    writer.close()


async def run(options):
    bucket = Bucket()
    server = await asyncio.start_server(bucket.serve, "127.0.0.1", 0, limit=PIECE, backlog=1000)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as state:
        environment = dict(
            os.environ, AWS_ACCESS_KEY_ID="AKIAFAKE00EXAMPLE", AWS_SECRET_ACCESS_KEY="fake/secret+key",
            AWS_REGION="us-east-1", AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null")
        process = await asyncio.create_subprocess_exec(
            options.program, "serve", "--to", "s3://media/in/", "--state", state, "--listen", "127.0.0.1:0",
            "--endpoint", f"http://127.0.0.1:{port}", stdout=subprocess.PIPE, env=environment)
        try:
            url = (await process.stdout.readline()).decode().strip()
            show("before", process.pid)
            length, results = options.megabytes << 20, []
            waiting, released, shown = 0, asyncio.Event(), False

            async def barrier(sent):
                """Lets all clients send the next piece once each has sent this one."""
                nonlocal waiting, released, shown
                waiting += 1
                mine = released
                if waiting == options.uploads:
                    waiting, released = 0, asyncio.Event()
                    if sent * 2 >= length and not shown:
                        shown = True
                        await asyncio.sleep(1)
                        show("in the midst", process.pid)
                    mine.set()
                await mine.wait()

            target = int(url.rstrip("/").rsplit(":", 1)[1])
            await asyncio.gather(
                *(send(number, target, length, barrier, results) for number in range(options.uploads)))
            show("at the end", process.pid)
            created = sum(b" 201 " in line for line in results)
            print(f"{created} of {options.uploads} files stored, {bucket.parts} parts and objects sent")
            if created != options.uploads:
                raise SystemExit(f"refused: {sorted(set(results))}")
        finally:
            process.terminate()
            await process.wait()
            server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--uploads", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=6)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
