"""Real requests of each protocol and of the page, with random changes."""
import base64, re
from urllib.parse import urljoin

TOKEN = "robustness-test-token"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "TRACE", "CONNECT", "PROPFIND", "get", "X" * 300]
PATHS = ["/", "/a.txt", "/b.jpg", "/sub/", "/sub", "/sub/c.txt", "/none", "/none/", "/healthz", "/metrics", "/.fullbore/", "/.fullbore/lock",
         "/.fullbore-page/about", "/.fullbore-page/page.js", "/.fullbore-page/none", "/.fullbore-page/", "/.fullbore-upload/",
         "/.fullbore-upload/" + "0" * 32, "/.fullbore-upload/x", "*", "//", "/../etc/passwd", "/%2e%2e/", "/%00", "/%ff%fe", "/a%2fb", "/CON",
         "http://127.0.0.1/a.txt", "http://other.example/", "/" + "d/" * 200, "/" + "n" * 300]
QUERIES = ["", "archive=zip", "archive=tar", "archive=rar", "archive=", "thumbnail", "download", "ticket=0", "after=b.jpg", "after=%ff", "limit=1",
           "limit=-1", "limit=99999999999999999999", "after=a&after=b", "%", "a=%zz", "archive=zip&ticket=00", "=&=", "x" * 5000]
NUMBERS = ["0", "1", "5", "10", "-1", "+5", "5, 5", "007", "9223372036854775807", "18446744073709551616", "99999999999999999999999", "0x10", "1e3", "", "a"]
TEXTS = ["", "*", "text/html", "application/json", "identity", "gzip", "bytes=0-0", "bytes=-1", "bytes=5-1", "bytes=0-0,2-3," * 40, "\"x\"", "W/\"x\"",
         "multipart/form-data; boundary=b", "multipart/form-data", "application/offset+octet-stream", "application/partial-upload",
         "application/x-www-form-urlencoded", "sha-256=:AAAA:", "sha-256=:" + "A" * 43 + "=:", "sha-256=10", "chunked", "100-continue", "?0", "?1", "?2",
         "partial", "final;/.fullbore-upload/" + "0" * 32, "filename YS50eHQ=", "filename =", "a b c", "relativePath Li4vLi4vZXRj", "mtime MTIz",
         "Sun, 06 Nov 1994 08:49:37 GMT", "http://evil.example", "null", "\x01", "\xe9", "a" * 9000, "bytes 0-4/9", "bytes */9", "attachment; filename=a.txt"]
FIELDS = ["Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Access-Control-Request-Method", "Connection", "Content-Digest", "Content-Disposition",
          "Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Date", "Expect", "Host", "If-Match", "If-Modified-Since", "If-None-Match",
          "If-Range", "If-Unmodified-Since", "Last-Modified", "Origin", "Prefer", "Range", "Repr-Digest", "Sec-Fetch-Site", "TE", "Trailer", "Transfer-Encoding",
          "Tus-Resumable", "Upgrade", "Upload-Checksum", "Upload-Complete", "Upload-Concat", "Upload-Defer-Length", "Upload-Draft-Interop-Version",
          "Upload-Incomplete", "Upload-Length", "Upload-Limit", "Upload-Metadata", "Upload-Offset", "Want-Content-Digest", "Want-Repr-Digest",
          "X-HTTP-Method-Override", "X" * 60]


def b64(text):
    return base64.b64encode(text.encode()).decode()


class RandomRequests:
    """Makes requests of one random sequence, and remembers places of uploads and tickets that answers have told."""

    def __init__(self, dice, port):
        self.dice, self.port, self.places, self.tickets = dice, port, [], []

    def seeds(self):
        """Requests that are right, as (method, target, fields, body)."""
        dice = self.dice
        name = f"{dice.randrange(40)}.bin"
        body = dice.randbytes(dice.choice([0, 1, 10, 5000]))
        place = dice.choice(self.places or ["/.fullbore-upload/" + "0" * 32])
        tus, kind = {"Tus-Resumable": "1.0.0"}, {"Content-Type": "application/offset+octet-stream"}
        form = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n\r\n%s\r\n--b--\r\n" % (name.encode(), body)
        offset = str(dice.choice([0, 0, len(body), dice.randrange(6000)]))
        return [
            ("GET", dice.choice(PATHS), {"Accept": dice.choice(["*/*", "text/html", "application/json"])}, None),
            ("GET", "/?archive=" + dice.choice(["zip", "tar"]), {"Range": f"bytes={dice.randrange(500)}-"}, None),
            ("GET", dice.choice(self.tickets or ["/a.txt?ticket=0"]), {}, None),
            ("GET", "/b.jpg?thumbnail", {}, None),
            ("GET", "/.fullbore-page/about", {"Accept": "application/json"}, None),
            ("GET", "/metrics", {}, None),
            ("QUERY", dice.choice(["/", "/sub/"]), {"Content-Type": "application/vnd.fullbore.names", "Want-Repr-Digest": "sha-256=10"},
             b"a.txt\nsub/c.txt\nb.jpg \"x\"\n./\nnone\n%ff/\n"),
            ("PUT", "/" + name, {"If-Match": "*"} if dice.random() < 0.3 else {}, body),
            ("POST", "/sub/", {"Content-Disposition": f'attachment; filename="{name}"'}, body),
            ("POST", "/", {"Content-Type": "multipart/form-data; boundary=b"}, form),
            ("POST", "/", tus | {"Upload-Length": str(len(body) + dice.choice([0, 0, 100])), "Upload-Metadata": f"filename {b64(name)}"}, b""),
            ("POST", "/", tus | kind | {"Upload-Length": str(len(body)), "Upload-Metadata": f"relativePath {b64('sub/' + name)}"}, body),
            ("POST", "/", tus | {"Upload-Concat": "partial", "Upload-Length": str(len(body))}, b""),
            ("POST", "/", tus | {"Upload-Concat": f"final;{place}", "Upload-Metadata": f"filename {b64(name)}"}, b""),
            ("PATCH", place, tus | kind | {"Upload-Offset": offset}, body),
            ("HEAD", place, tus, None),
            ("DELETE", place, tus, None),
            ("POST", "/" + name, {"Upload-Complete": "?0", "Upload-Draft-Interop-Version": dice.choice("345678")}, body),
            ("PATCH", place, {"Upload-Complete": dice.choice(["?0", "?1"]), "Upload-Offset": offset, "Content-Type": "application/partial-upload"}, body),
            ("OPTIONS", dice.choice(PATHS), {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"}, None),
        ]

    def next(self):
        """The bytes of a request. Half of them have one change, and few have many."""
        dice = self.dice
        method, target, fields, body = dice.choice(self.seeds())
        fields = [("Host", f"127.0.0.1:{self.port}")] + list(fields.items())
        if dice.random() < 0.93:
            login = b64("any:" + TOKEN)
            fields.append(("Authorization", dice.choice([f"Bearer {TOKEN}"] * 3 + [f"Basic {login}"])))
        isChunked, length = body is not None and dice.random() < 0.15, None
        if isChunked:
            fields.append(("Transfer-Encoding", "chunked"))
        elif body is not None:
            length = len(body)
        for _ in range(dice.choice([0, 1, 1, 1, 2, 3, 8])):
            change = dice.randrange(9)
            if change == 0:
                method = dice.choice(METHODS)
            elif change == 1:
                target = dice.choice(PATHS + self.places)
            elif change == 2:
                target = target.split("?")[0] + "?" + dice.choice(QUERIES)
            elif change == 3:
                fields.append((dice.choice(FIELDS), dice.choice(TEXTS + NUMBERS)))
            elif change == 4 and fields:
                at = dice.randrange(len(fields))
                fields[at] = (fields[at][0], dice.choice(TEXTS + NUMBERS))
            elif change == 5 and len(fields) > 1:
                fields.pop(dice.randrange(len(fields)))
            elif change == 6 and fields:
                fields.append(dice.choice(fields))
            elif change == 7 and body:
                body = self.bent(body)
            elif change == 8:
                target = self.bent(target.encode("latin-1", "replace")).decode("latin-1")
        if isChunked:
            size = dice.choice([len(body), len(body), len(body), len(body) + 3, 0])
            body = b"%x\r\n%s\r\n0\r\n%s\r\n" % (size, body, dice.choice([b"", b"", b"X: y\r\n", b"Repr-Digest: sha-256=:AAAA:\r\n"]))
        elif length is not None:
            fields.append(("Content-Length", str(dice.choice([length] * 8 + [length + 7, max(0, length - 1)]))))
        head = f"{method} {target} HTTP/{dice.choice(['1.1'] * 20 + ['1.0', '2.0', '1.11'])}\r\n"
        # A connection that stays open costs time: nothing tells that no more comes.
        if dice.random() < 0.99:
            fields.append(("Connection", "close"))
        head += "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
        data = head.encode("latin-1", "replace") + (body or b"")
        return self.bent(data) if dice.random() < 0.05 else data

    def bent(self, data):
        """The bytes with one of them changed, or some left out or doubled."""
        dice, at = self.dice, self.dice.randrange(len(data) + 1)
        kind = dice.randrange(3)
        if kind == 0:
            return data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]
        end = min(len(data), at + dice.randrange(40))
        return data[:at] + data[end:] if kind == 1 else data[:end] + data[at:]

    def learn(self, answer):
        if place := re.search(rb"(?i)\r\nlocation: (\S+/\.fullbore-upload/[0-9a-f]+)", answer):
            self.places = self.places[-30:] + [urljoin("/", place[1].decode())]
        for link in re.findall(rb'"(?:url|thumbnail|archive)":"\.(/[^"]*ticket=[0-9a-f]+)"', answer)[:3]:
            self.tickets = self.tickets[-20:] + [link.decode()]
