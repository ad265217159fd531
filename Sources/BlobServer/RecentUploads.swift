/// The outcomes of recent uploads that the store does not know: finished in one request (a value), or gone (nil). The
/// oldest are forgotten if there are too many, or if their records take too much memory.
struct RecentUploads {
  private var outcomes: [UploadID: SavedUpload?] = [:]
  /// Ids from the oldest to the newest.
  private var order: [UploadID] = []
  private(set) var bytes = 0

  private static let most = 2048
  private static let mostBytes = 4 << 20

  subscript(id: UploadID) -> SavedUpload?? { outcomes[id] }

  var count: Int { outcomes.count }

  mutating func remember(_ id: UploadID, _ finished: SavedUpload?) {
    let old = outcomes.updateValue(finished, forKey: id)
    if let old { bytes -= Self.size(old) } else { order.append(id) }
    bytes += Self.size(finished)
    while order.count > Self.most || bytes > Self.mostBytes, order.count > 1 {
      let excess = order.count / 2
      for id in order.prefix(excess) {
        if let old = outcomes.removeValue(forKey: id) { bytes -= Self.size(old) }
      }
      order.removeFirst(excess)
    }
  }

  /// The memory that the record's texts take, in bytes.
  private static func size(_ outcome: SavedUpload?) -> Int { outcome?.record.text.utf8.count ?? 0 }
}
