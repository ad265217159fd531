import BlobHTTP
import Blobs

extension ConnectionWorker {
  /// Bodies below this are read whole and sent with the head.
  static let smallBody: Int64 = 64 << 10
  /// The head of a request that goes past libcurl.
  static let longestHead = 8 << 10

  /// Writes the head of the request to the beginning of `small`, as libcurl would. Its length.
  func write(headOf request: HTTPRequest, _ transfer: Transfer) -> Int {
    var writer = HeadWriter(room: small)
    writer.put(request.method)
    writer.put(" ")
    writer.put(request.url.path)
    if let query = request.url.query {
      writer.put("?")
      writer.put(query)
    }
    writer.put(" HTTP/1.1\r\n")
    let fields = request.headers.fields
    func has(_ name: String) -> Bool { fields.contains { $0.name.isSameField(name) } }
    for (name, line) in standingLines(for: request.url) where !has(name) { writer.put(line) }
    for (name, value) in fields where !name.isSameField("Content-Length") { writer.put(field: name, value) }
    if transfer.reader != nil || request.sendsLength {
      writer.put("Content-Length: ")
      writer.put(UInt64(transfer.length ?? 0))
      writer.put("\r\n")
    }
    writer.put("\r\n")
    return writer.count
  }

  /// What every request to a server says that does not say it itself.
  private func standingLines(for url: HTTPURL) -> [(name: String, line: String)] {
    if let standing, standing.url.isAtServer(of: url) { return standing.lines }
    let port = url.port == (url.scheme == "https" ? 443 : 80) ? "" : ":\(url.port)"
    let lines = [
      ("Host", "Host: \(url.host)\(port)\r\n"), ("User-Agent", "User-Agent: \(options.userAgent)\r\n"),
      ("Accept", "Accept: */*\r\n"),
    ]
    standing = (url, lines)
    return lines
  }
}

extension HTTPRequest {
  /// Says how long its body is even where it has none. RFC 9110 §8.6.
  var sendsLength: Bool { method == "PUT" || method == "POST" || method == "PATCH" }

  /// Whether its head is short and of characters that stand for themselves: the rest is libcurl's to encode.
  var canBeWritten: Bool {
    let size = headers.fields.reduce(url.text.utf8.count + 256) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    if size >= ConnectionWorker.longestHead { return false }
    func isPlain(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { $0 > 32 && $0 < 127 } }
    return url.text.utf8.withContiguousStorageIfAvailable { isPlain($0) } ?? isPlain(url.text.utf8)
  }
}

/// Puts text into memory of which there is enough.
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
