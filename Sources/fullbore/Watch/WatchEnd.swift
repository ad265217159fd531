/// The work that is left when a watch is interrupted.
enum WatchEnd: Sendable, Hashable {
  case nothingLeft
  /// So many files were found and are not at the destination.
  case left(Int)
  /// Not all files of the folders were looked at yet.
  case unlisted
  /// The destination did not answer, so nothing is known.
  case away

  /// `failed`: the number of files that have failed and are not tried again.
  func text(failed: Int) -> String {
    switch self {
    case .nothingLeft: failed > 0 ? "stopped: nothing else is left to send" : "stopped: nothing is left to send"
    case .left(let count):
      "stopped: \(Quantity.plural(count, "file")) \(count == 1 ? "is" : "are") still to be sent; run it again to go on"
    case .unlisted: "stopped before all files were looked at: run it again to go on"
    case .away: "stopped while the destination did not answer: run it again to send what is left"
    }
  }
}
