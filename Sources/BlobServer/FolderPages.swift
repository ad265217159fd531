/// Makes folder pages, which list folders of any number of entries.
struct FolderPages: Sendable {
  /// Separate, so that uploads do not wait for listings.
  private let threads = Workers(threads: 2)
  /// Limits the pages being generated or sent, and their total size in bytes. Each page is in memory until its client has
  /// read it.
  private let pages = Allowance(64)
  private let bytes = Allowance(64 << 20)

  /// Runs `work` while the connection is suspended. Throws 503 if too many pages are in progress or their total size is
  /// too large.
  func page(_ work: @escaping @Sendable () throws(ServerError) -> Reply) throws(ServerError) -> Plan {
    guard let place = pages.take() else { throw Self.tooMany }
    return threads.plan { [bytes] () throws(ServerError) in
      var reply = try work()
      guard let size = bytes.take(reply.size) else { throw Self.tooMany }
      reply.permits = [place, size]
      return .reply(reply)
    }
  }

  /// Runs `work`, which looks up a name, while the connection is suspended. It does not wait for uploads.
  func lookUp(_ work: @escaping @Sendable () -> Plan) -> Plan { threads.plan { () throws(ServerError) in work() } }

  func finish() { threads.finish() }

  private static var tooMany: ServerError {
    var error = ServerError(503, "too many clients read lists of folders; try again in a moment")
    error.headers["Retry-After"] = "5"
    return error
  }
}

/// The threads and the limits of archives.
struct ArchiveResources: Sendable {
  /// These threads list the files of archives, and read those whose checksums a range needs.
  let threads = Workers(threads: 2)
  /// Limits the archives that are made or sent, and their lists in bytes.
  let count = Allowance(32)
  let bytes = Allowance(64 << 20)
  /// Held while files are read whose checksums a range needs, which may take long: other archives need the other thread.
  let reading = Allowance(1)
  let sums = ArchiveSums()
}

/// The threads that read files for QUERY, and its limit.
struct QueryResources: Sendable {
  let threads = Workers(threads: 4)
  /// Limits the lists of names that are received or answered, in bytes.
  let bytes = Allowance(32 << 20)
}
