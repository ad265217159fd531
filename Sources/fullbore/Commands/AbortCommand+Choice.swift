import BlobUpload

extension AbortCommand.Choice {
  func contains(_ entry: JournalEntry, now: Int64) -> Bool {
    switch self {
    case .all: true
    case .expired: entry.session?.expires.map { $0 <= now } ?? false
    case .orphans, .unread: false
    case .ids(let ids): ids.contains(entry.id)
    }
  }

  /// The message if there is nothing of this kind.
  var none: String {
    switch self {
    case .expired: "Nothing has expired"
    case .unread: "No push ended before all its files were known"
    case .ids, .all, .orphans: "Nothing is unfinished"
    }
  }
}

extension JournalEntry {
  /// Description of an upload that the server reports as complete.
  var whatStays: String {
    let endpoint = destination.endpoint
    if let sentLimit, let length = intent.length, session?.state["url"] != nil, sentLimit < length {
      return
        "\(endpoint) says that it has all its bytes, though \(sentLimit) of \(length) were sent at most; it stays there"
    }
    return "all its bytes are at \(endpoint), and stay there"
  }

  /// What happened to the upload at the server when its session was aborted.
  var whatAbortDeletes: String {
    let endpoint = destination.endpoint
    if isStored { return "it stays at \(endpoint), and its temporary files are deleted" }
    if isJoined { return "its parts are deleted at \(endpoint)" }
    if hasTemporaryFiles { return "only its temporary files are deleted at \(endpoint)" }
    return "its unfinished upload is deleted at \(endpoint)"
  }
}
