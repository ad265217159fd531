/// Tells a client how far its upload is while it sends, for it to let go of what has arrived.
final class ProgressTeller: @unchecked Sendable {
  // Belongs to the event thread of its connection, as its receiver does.
  private weak var client: Request?
  private let ietf: IETF
  /// Bytes since it was told.
  private var untold = 0

  /// Bytes after which it is worth an answer.
  private static let step = 1 << 20

  init(to client: Request, _ ietf: IETF) {
    self.client = client
    self.ietf = ietf
  }

  /// So many bytes more; `offset` is where the upload is by now.
  func came(_ count: Int, _ offset: () -> Int64) {
    untold += count
    if untold < Self.step { return }
    if client?.inform(orSkip: ietf.progress(offset())) == true { untold = 0 }
  }
}
