#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Makes heads of the lines libcurl hands over one by one.
struct HeadParser {
  /// The final head, once it is complete.
  private(set) var final: HTTPHead?
  private var status = 0
  private var headers = HTTPHeaders()

  /// Takes one line with its line break. Returns an interim head (1xx but 100) when the line completes one.
  mutating func take(_ line: UnsafeRawBufferPointer) -> HTTPHead? {
    if final != nil { return nil }  // trailers
    let line = line.strippingLineBreak
    if line.isEmpty { return complete() }
    if line.begins(with: "HTTP/") {
      status = Self.status(of: line)
      headers = HTTPHeaders()
      headers.reserve(8)
    } else if let colon = line.place(of: UInt8(ascii: ":")) {
      headers.add(
        String(decoding: UnsafeRawBufferPointer(rebasing: line[..<colon]), as: UTF8.self),
        String(decoding: UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]).trimmed, as: UTF8.self))
    }
    return nil
  }

  private mutating func complete() -> HTTPHead? {
    let head = HTTPHead(status: status, headers: headers)
    if status == 0 || status == 100 { return nil }
    if status < 200 && status != 101 { return head }
    final = head
    return nil
  }

  /// The three digits after the first space; 0 when there are none.
  private static func status(of line: UnsafeRawBufferPointer) -> Int {
    guard let space = line.place(of: UInt8(ascii: " ")) else { return 0 }
    let digits = line[(space + 1)...].prefix(3)
    guard digits.count == 3, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return 0 }
    return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }
}

extension UnsafeRawBufferPointer {
  /// Where a byte is found first.
  func place(of byte: UInt8) -> Int? {
    guard let start = baseAddress, let found = memchr(start, Int32(byte), count) else { return nil }
    return UnsafeRawPointer(found) - start
  }

  func begins(with text: StaticString) -> Bool {
    count >= text.utf8CodeUnitCount && memcmp(baseAddress!, text.utf8Start, text.utf8CodeUnitCount) == 0
  }

  fileprivate var strippingLineBreak: UnsafeRawBufferPointer {
    var end = count
    while end > 0, self[end - 1] == 10 || self[end - 1] == 13 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: self[..<end])
  }

  /// Without spaces and tabs at either end. RFC 9110 §5.5.
  fileprivate var trimmed: UnsafeRawBufferPointer {
    var start = 0
    var end = count
    while start < end, self[start] == 32 || self[start] == 9 { start += 1 }
    while end > start, self[end - 1] == 32 || self[end - 1] == 9 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: self[start..<end])
  }
}
