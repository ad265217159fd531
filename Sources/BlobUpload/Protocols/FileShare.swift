import BlobHTTP
import Synchronization

extension UploadContext {
  /// An exchange for a body that contains a file and other data: only the bytes of the file are reported. `head`:
  /// number of bytes before the file. `length`: of the file; nil: it extends to the end of the body.
  func reporting(fileBehind head: Int64, length: Int64?) -> Exchange {
    let file = FileShare(behind: head, length: length)
    return Exchange(sent: { [events] count in
      let change = file.advance(by: count)
      if change != 0 { events.sent(change) }
    })
  }
}

/// Counts the bytes of a file within a body that also contains other data.
private final class FileShare: Sendable {
  private let head: Int64
  private let length: Int64
  private let sent = Mutex<Int64>(0)

  /// `length` nil: the file extends to the end of the body.
  init(behind head: Int64, length: Int64?) {
    self.head = head
    self.length = length ?? .max
  }

  /// The number of file bytes among the `count` body bytes sent next; negative if they will be sent again.
  func advance(by count: Int) -> Int {
    sent.withLock { sent in
      func share(_ offset: Int64) -> Int64 { min(max(offset - head, 0), length) }
      let before = share(sent)
      sent += Int64(count)
      return Int(share(sent) - before)
    }
  }
}
