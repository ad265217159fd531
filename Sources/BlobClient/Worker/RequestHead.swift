import BlobHTTP
import Blobs

/// Writes the heads of a worker's requests.
struct RequestHeads {
  let userAgent: String
  /// Header lines that all requests to the last request's server have in common.
  private var standing: (url: HTTPURL, lines: [(name: String, line: String)])?

  init(userAgent: String) { self.userAgent = userAgent }

  /// Writes the head of the request to the beginning of `room`, which must be large enough. Returns the head's length.
  /// - `relay`: the proxy that receives the request instead of its server. RFC 9112 §3.2.2.
  mutating func write(_ transfer: Transfer, by relay: Proxy?, into room: UnsafeMutableRawBufferPointer) -> Int {
    let request = transfer.request
    var writer = HeadWriter(room: room)
    writer.put(request.method)
    writer.put(" ")
    if relay != nil { writer.put("http://\(request.url.authority)") }
    writer.put(encoded: request.url.path)
    if let query = request.url.query {
      writer.put("?")
      writer.put(encoded: query)
    }
    writer.put(" HTTP/1.1\r\n")
    if let credentials = relay?.basicCredentials { writer.put(field: "Proxy-Authorization", "Basic \(credentials)") }
    let fields = request.headers.fields
    func has(_ name: String) -> Bool { fields.contains { $0.name.isSameField(name) } }
    for (name, line) in standingLines(for: request.url) where !has(name) { writer.put(line) }
    for (name, value) in fields where !name.isSameField("Content-Length") { writer.put(field: name, value) }
    if transfer.body.isChunked {
      writer.put("Transfer-Encoding: chunked\r\n")
    } else if transfer.body.reader != nil || request.sendsLength {
      writer.put("Content-Length: ")
      writer.put(UInt64(transfer.body.length ?? 0))
      writer.put("\r\n")
    }
    writer.put("\r\n")
    return writer.count
  }

  /// Fields that every request to this server has, unless the request sets them itself.
  private mutating func standingLines(for url: HTTPURL) -> [(name: String, line: String)] {
    if let standing, standing.url.isAtServer(of: url) { return standing.lines }
    let lines = [
      ("Host", "Host: \(url.authority)\r\n"), ("User-Agent", "User-Agent: \(userAgent)\r\n"),
      ("Accept", "Accept: */*\r\n"),
    ]
    standing = (url, lines)
    return lines
  }
}

extension HTTPRequest {
  /// Whether the request has `Content-Length` even without a body. RFC 9110 §8.6.
  var sendsLength: Bool { method == "PUT" || method == "POST" || method == "PATCH" }

  /// Upper limit for the length of the head, with the fields that a transport adds. Encoding may turn one byte of a URL
  /// into three.
  var mostHeadBytes: Int {
    let fields = headers.fields.reduce(512) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    let size = fields + url.text.utf8.count
    return size < WorkerBuffers.longestHead / 4 ? size : size + 2 * url.text.utf8.count + 2048
  }
}

extension HTTPURL {
  /// Host and port as in the `Host` field: without the port if it is the scheme's default. RFC 9110 §7.2.
  fileprivate var authority: String {
    let isStandard = port == (scheme == "https" ? 443 : 80)
    return "\(host)\(isStandard ? "" : ":\(port)")"
  }
}

/// Writes text to memory that must be large enough.
private struct HeadWriter {
  let room: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(room: UnsafeMutableRawBufferPointer) { self.room = room }

  mutating func put(field name: String, _ value: String) {
    put(name)
    put(value.isEmpty ? ":" : ": ")
    put(value)
    put("\r\n")
  }

  /// Percent-encodes characters outside ASCII, which the caller's URL may contain.
  mutating func put(encoded text: String) {
    let isPlain = text.utf8.withContiguousStorageIfAvailable { bytes in
      var all: UInt8 = 0
      for byte in bytes { all |= byte }
      return all < 0x80
    }
    if isPlain == true { return put(text) }
    put(
      text.utf8.reduce(into: "") { $0 += $1 < 0x80 ? String(UnicodeScalar($1)) : HTTPURL.encode(CollectionOfOne($1)) })
  }

  mutating func put(_ number: UInt64) {
    let start = count
    var rest = number
    repeat {
      room[count] = UInt8(truncatingIfNeeded: rest % 10) + 48
      count += 1
      rest /= 10
    } while rest > 0
    room[start..<count].reverse()
  }

  mutating func put(_ text: String) {
    let copied = text.utf8.withContiguousStorageIfAvailable { bytes in
      UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: UnsafeRawBufferPointer(bytes))
      return bytes.count
    }
    if let copied { count += copied } else { put(String(decoding: Array(text.utf8), as: UTF8.self)) }
  }
}
