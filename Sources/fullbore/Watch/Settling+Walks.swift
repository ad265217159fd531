import Blobs

extension Settling {
  /// Whether a file that a walk has found was left alone for long enough, and has no writer. This call blocks.
  func isAtRest(_ item: TreeItem) -> Bool {
    let age = Duration.nanoseconds(FileStamp.now.subtractingClamped(item.stamp.changed))
    if age <= rest { return false }
    let writers = FileUsers(of: item.path, for: .writing)
    return writers == .none || writers == .unknown && age > restUnseen
  }
}
