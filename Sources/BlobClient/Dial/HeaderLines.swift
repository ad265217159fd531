import BlobHTTP
import CCurl

/// The header lines of a request as libcurl wants them, in memory that serves the next request too.
struct HeaderLines: ~Copyable {
  private var text: UnsafeMutableBufferPointer<CChar> = .init(start: nil, count: 0)
  private var nodes: UnsafeMutableBufferPointer<curl_slist> = .init(start: nil, count: 0)

  deinit {
    text.deallocate()
    nodes.deallocate()
  }

  /// The list for `request`; valid until the next call. `plain` lines come first and must be static.
  mutating func list(for request: HTTPRequest, _ plain: [StaticString]) -> UnsafeMutablePointer<curl_slist>? {
    let fields = request.headers.fields
    reserve(
      fields.reduce(48) { $0 + $1.name.utf8.count + $1.value.utf8.count + 3 }, nodes: plain.count + fields.count + 1)
    var used = 0
    for (index, line) in plain.enumerated() {
      let start = UnsafeMutableRawPointer(mutating: line.utf8Start).assumingMemoryBound(to: CChar.self)
      nodes[index] = curl_slist(data: start, next: nil)
    }
    var count = plain.count
    for (name, value) in fields where !name.isSameField("Content-Length") {
      nodes[count] = curl_slist(data: text.baseAddress! + used, next: nil)
      count += 1
      used = put(name, at: used)
      // "Name:" would take a header away; this is how libcurl sends an empty one.
      used = value.isEmpty ? put(";", at: used) : put(value, at: put(": ", at: used))
      text[used] = 0
      used += 1
    }
    if count == 0 { return nil }
    for index in 1..<max(count, 1) { nodes[index - 1].next = nodes.baseAddress! + index }
    nodes[count - 1].next = nil
    return nodes.baseAddress
  }

  private mutating func reserve(_ bytes: Int, nodes count: Int) {
    if text.count < bytes {
      text.deallocate()
      text = .allocate(capacity: max(bytes, 1024))
    }
    if nodes.count < count {
      nodes.deallocate()
      nodes = .allocate(capacity: max(count, 16))
    }
  }

  private func put(_ string: String, at start: Int) -> Int {
    var end = start
    for byte in string.utf8 {
      text[end] = CChar(bitPattern: byte)
      end += 1
    }
    return end
  }
}
