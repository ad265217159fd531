/// Sends progress reports to a client during its upload, so that it can discard bytes that have arrived.
final class InterimProgress: @unchecked Sendable {
  // Belongs to the event thread of the connection, as its receiver does.
  private weak var client: Request?
  private let ietf: IETF
  /// Bytes received since the last report.
  private var untold = 0

  /// Bytes between two reports.
  private static let step = 1 << 20

  init(to client: Request, _ ietf: IETF) {
    self.client = client
    self.ietf = ietf
  }

  /// Call when `count` bytes have arrived. `offset` returns the upload's current offset.
  func came(_ count: Int, _ offset: () -> Int64) {
    untold += count
    if untold < Self.step { return }
    if client?.inform(orSkip: ietf.progress(offset())) == true { untold = 0 }
  }
}
