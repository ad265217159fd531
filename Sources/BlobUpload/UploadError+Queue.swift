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
}
