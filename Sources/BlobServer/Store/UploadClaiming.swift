/// Shares unfinished uploads with the stores of other servers. One store at a time holds the claim to an upload, and only that
/// one may change the upload.
package protocol UploadClaiming: Sendable {
  /// Gets the claim to a saved upload that is not finished. If another server holds it, that server is asked to let go of it;
  /// if that server is dead, the claim is taken once its lease has expired. `waits`: false: only a claim that nobody holds is
  /// taken. Throws 503 if the other server does not let go of the claim, or if the records cannot be reached. Blocks for some
  /// seconds at most.
  @discardableResult func claim(_ id: UploadID, waits: Bool) throws(ServerError) -> ClaimResult

  /// Sets what is called when another server asks for an upload, on a thread that may block. `letGo` ends the use of the
  /// upload by this server, and returns false if the upload is being published, so that the claim stays here.
  func onRequest(_ letGo: @escaping @Sendable (UploadID) -> Bool)
}

/// The outcome of an attempt to get a claim.
package enum ClaimResult: Sendable {
  /// This server held the claim already.
  case held
  /// This server has got the claim just now, so what it knew of the upload may be out of date.
  case taken
  /// Another server holds the claim. Only if the call does not wait.
  case refused
  /// No unfinished upload with a record has this id.
  case unknown
}

extension ServerError {
  /// Another server goes on with the upload, which has ended what this server did with it.
  package static let claimIsLost = {
    var error = ServerError(503, "another server goes on with the upload: ask for its state, and go on from there")
    error.headers["Retry-After"] = "1"
    error.isLossOfClaim = true
    return error
  }()
}
