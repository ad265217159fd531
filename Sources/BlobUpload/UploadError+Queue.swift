import Blobs

extension UploadError {
  /// An error of the journal, which ends the upload and all others that use the journal.
  public init(journal error: JournalError) {
    self.init(.giveUp, .journal, error.message, cause: error)
  }

  /// The process `pid` is sending the source, or another one to the same place. It may be this process itself.
  package init(busy path: BytePath, _ pid: Int32) {
    let sender =
      pid == ProcessIdentity.current.pid ? "another upload of this app" : "process \(pid)"
    self.init(.retry(after: .seconds(1)), .file, "\(path): \(sender) is sending it just now")
  }

  /// The bytes read back differ from those of the source.
  var saysOtherBytes: Bool { side == .file && status == nil && recovery == .giveUp && cause == nil }

  /// No other item can succeed after this error.
  package var endsQueue: Bool { side == .destination || side == .journal || side == .cancelled }

  /// The name has other bytes at the destination, and another name may be free.
  package var isNameTaken: Bool {
    guard let status, [409, 412].contains(status), side == .file else { return false }
    // A request that only asks creates no file. Of a folder in the way, no name of a file is free.
    return !message.hasPrefix("GET ") && !message.hasPrefix("HEAD ") && !message.contains(" is a folder")
      && !message.contains("a file is in the place of a folder")
      // A server refuses the id of a group of files, whatever their names are.
      && !message.contains(" wait in the group ")
  }
}
