import Blobs

extension CurlLane {
  /// Writes the head of the request to the beginning of `small`, as libcurl would. Its length.
  func write(headOf request: HTTPRequest, _ transfer: Transfer) -> Int {
    if small.baseAddress == nil { allocateSmall() }
    var writer = HeadWriter(room: small)
    writer.put(request.method, " ", request.url.path)
    if let query = request.url.query { writer.put("?", query) }
    writer.put(" HTTP/1.1\r\n")
    let fields = request.headers.fields
    func has(_ name: String) -> Bool { fields.contains { $0.name.isSameField(name) } }
    if !has("Host") {
      writer.put("Host: ", request.url.host)
      if request.url.port != (request.url.scheme == "https" ? 443 : 80) { writer.put(":\(request.url.port)") }
      writer.put("\r\n")
    }
    if !has("User-Agent") { writer.put("User-Agent: ", options.userAgent, "\r\n") }
    if !has("Accept") { writer.put("Accept: */*\r\n") }
    for (name, value) in fields where !name.isSameField("Content-Length") { writer.put(name, ": ", value, "\r\n") }
    if transfer.reader != nil || request.sendsLength { writer.put("Content-Length: \(transfer.length ?? 0)\r\n") }
    writer.put("\r\n")
    return writer.count
  }
}

extension HTTPRequest {
  /// Says how long its body is even where it has none. RFC 9110 §8.6.
  var sendsLength: Bool { method == "PUT" || method == "POST" || method == "PATCH" }

  /// Whether its head is short and of characters that stand for themselves: the rest is libcurl's to encode.
  var canBeWritten: Bool {
    let size = headers.fields.reduce(url.text.utf8.count + 256) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    return size < CurlLane.longestHead && url.text.utf8.allSatisfy { $0 > 32 && $0 < 127 }
  }
}

/// Puts text into memory of which there is enough.
private struct HeadWriter {
  let room: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init(room: UnsafeMutableRawBufferPointer) { self.room = room }

  mutating func put(_ texts: String...) {
    for text in texts { put(text) }
  }

  mutating func put(_ text: String) {
    var text = text
    text.withUTF8 { bytes in
      UnsafeMutableRawBufferPointer(rebasing: room[count...]).copyMemory(from: UnsafeRawBufferPointer(bytes))
      count += bytes.count
    }
  }
}
