import BlobHTTP
import Synchronization

extension UploadContext {
  /// An exchange whose body has a file and more around it: the bytes of the file alone are reported. `head`: bytes of the body
  /// before the file. `length`: of the file; nil: it goes on to the end of the body.
  func reporting(fileBehind head: Int64, length: Int64?) -> Exchange {
    let file = FileShare(behind: head, length: length)
    return Exchange(sent: { [events] count in
      let change = file.advance(by: count)
      if change != 0 { events.sent(change) }
    })
  }
}

/// Tells the bytes of a file from those around it in a body.
private final class FileShare: Sendable {
  private let head: Int64
  private let length: Int64
  private let sent = Mutex<Int64>(0)

  /// `length` nil: to the end.
  init(behind head: Int64, length: Int64?) {
    self.head = head
    self.length = length ?? .max
  }

  /// How much more of the file was sent; below 0 where it will be sent again.
  func advance(by count: Int) -> Int {
    sent.withLock { sent in
      func share(_ offset: Int64) -> Int64 { min(max(offset - head, 0), length) }
      let before = share(sent)
      sent += Int64(count)
      return Int(share(sent) - before)
    }
  }
}
