extension UploadError {
  /// An error of the journal, which ends the upload and all others that use the journal.
  public init(journal error: JournalError) {
    self.init(.giveUp, .journal, error.message, cause: error)
  }

  /// The bytes read back differ from those of the source.
  var saysOtherBytes: Bool { side == .file && status == nil && recovery == .giveUp && cause == nil }

  /// No other item can succeed after this error.
  var endsQueue: Bool { side == .destination || side == .journal || side == .cancelled }
}
