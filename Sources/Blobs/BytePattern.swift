import Platform

/// Finds a byte pattern in a stream that arrives in chunks (Knuth-Morris-Pratt algorithm).
struct BytePattern: Sendable {
  private let bytes: [UInt8]
  /// Indexed by the number of matched bytes before a mismatch: how many of them are a prefix of another match.
  private let fallback: [Int]
  /// The number of pattern bytes matched at the end of the last chunk.
  private var matched = 0

  init(_ bytes: [UInt8]) {
    precondition(!bytes.isEmpty, "nothing to look for")
    self.bytes = bytes
    var fallback = [0, 0]
    var length = 0
    for byte in bytes.dropFirst() {
      while length > 0 && byte != bytes[length] { length = fallback[length] }
      if byte == bytes[length] { length += 1 }
      fallback.append(length)
    }
    self.fallback = fallback
  }

  /// Counts the matches that end in `chunk`. Matches do not overlap.
  mutating func count(in chunk: UnsafeRawBufferPointer) -> Int {
    var found = 0
    var place = 0
    while place < chunk.count {
      if matched == 0 {
        // Skips to the next byte that could begin a match.
        guard let start = memchr(chunk.baseAddress! + place, Int32(bytes[0]), chunk.count - place) else { return found }
        place = UnsafeRawPointer(start) - chunk.baseAddress!
      }
      while matched > 0 && chunk[place] != bytes[matched] { matched = fallback[matched] }
      if chunk[place] == bytes[matched] { matched += 1 }
      place += 1
      if matched == bytes.count {
        found += 1
        matched = 0
      }
    }
    return found
  }
}
