extension UploadError {
  public init(journal error: JournalError) {
    self.init(.giveUp, .journal, error.message, cause: error)
  }

  /// What was read back is not what the source has.
  var saysOtherBytes: Bool { side == .file && status == nil && recovery == .giveUp && cause == nil }

  /// Nothing else can succeed after this one.
  var endsQueue: Bool { side == .destination || side == .journal || side == .cancelled }
}

extension Journal {
  func flushed() throws(UploadError) {
    do { try flush() } catch { throw UploadError(journal: error) }
  }
}
