import Platform

/// One line of a header or trailer section, without its line break. RFC 9112 §5.
struct FieldLine {
  let name: UnsafeRawBufferPointer
  /// Without spaces and tabs at either end.
  let value: UnsafeRawBufferPointer

  /// nil if no field name stands directly before a colon. This also refuses folded lines and a blank before the colon,
  /// which programs interpret in different ways.
  init?(_ line: UnsafeRawBufferPointer) {
    guard let colon = line.place(of: UInt8(ascii: ":")), colon > 0 else { return nil }
    name = UnsafeRawBufferPointer(rebasing: line[..<colon])
    value = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]).trimmed
    for byte in name where !byte.isTokenByte { return nil }
  }
}

extension HTTPHeaders {
  mutating func add(_ line: FieldLine) {
    add(String(decoding: line.name, as: UTF8.self), String(decoding: line.value, as: UTF8.self))
  }
}

extension UnsafeRawBufferPointer {
  /// Index of the first occurrence of `byte`.
  package func place(of byte: UInt8) -> Int? {
    guard let start = baseAddress, let found = memchr(start, Int32(byte), count) else { return nil }
    return UnsafeRawPointer(found) - start
  }

  package func begins(with text: StaticString) -> Bool {
    count >= text.utf8CodeUnitCount && memcmp(baseAddress!, text.utf8Start, text.utf8CodeUnitCount) == 0
  }

  /// True if there is a control character other than a tab, which alone is allowed in a field value. RFC 9110 §5.5.
  var hasControlCharacter: Bool {
    for byte in self where byte < 32 && byte != 9 || byte == 127 { return true }
    return false
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
