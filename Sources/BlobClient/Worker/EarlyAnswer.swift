import BlobHTTP
import CCurl
import Platform

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

  /// Calls `take` with each whole line, its line break included, until it wants no more of them: they end with the head.
  mutating func forEachLine(_ take: (UnsafeRawBufferPointer) -> Bool) {
    guard bytes.starts(with: "HTTP/1.".utf8) else { return }
    bytes.withUnsafeBytes { bytes in
      var wantsMore = true
      while wantsMore, let end = UnsafeRawBufferPointer(rebasing: bytes[headEnd...]).place(of: 10) {
        let line = UnsafeRawBufferPointer(rebasing: bytes[headEnd...(headEnd + end)])
        headEnd += line.count
        wantsMore = take(line)
      }
    }
  }

  /// Its content, as far as it came and is not framed in chunks.
  func content(for head: HTTPHead?) -> [UInt8] {
    guard let length = head?.headers.bytes("Content-Length"), length > 0 else { return [] }
    return Array(bytes[headEnd...].prefix(Int(clamping: length)))
  }
}
