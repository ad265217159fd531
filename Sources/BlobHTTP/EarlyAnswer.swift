import CCurl

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// What stands unread in the socket of a connection that broke while a body was sent.
struct EarlyAnswer {
  private var bytes: [UInt8] = []
  private var headEnd = 0

  /// Takes what is there, up to 64 KiB, without waiting.
  mutating func read(_ socket: Int32) {
    bytes = [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
      while count < buffer.count {
        let got = recv(socket, buffer.baseAddress! + count, buffer.count - count, Int32(MSG_DONTWAIT))
        if got <= 0 { break }
        count += got
      }
    }
  }

  /// The interim heads; the final one goes to `parser`, if it is whole.
  mutating func parse(into parser: inout HeadParser) -> [HTTPHead] {
    var trial = HeadParser()
    var interim: [HTTPHead] = []
    guard bytes.starts(with: "HTTP/1.".utf8) else { return [] }
    bytes.withUnsafeBytes { bytes in
      while trial.final == nil, let end = bytes[headEnd...].firstIndex(of: 10) {
        if let head = trial.take(UnsafeRawBufferPointer(rebasing: bytes[headEnd...end])) { interim.append(head) }
        headEnd = end + 1
      }
    }
    if trial.final != nil { parser = trial }
    return interim
  }

  /// Its content, as far as it came and is not framed in chunks.
  func content(for head: HTTPHead?) -> [UInt8] {
    guard let length = head?.headers.bytes("Content-Length"), length > 0 else { return [] }
    return Array(bytes[headEnd...].prefix(Int(clamping: length)))
  }
}
