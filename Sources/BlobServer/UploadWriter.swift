import BlobCrypto

/// The right to add bytes, until a newer one is given out.
final class UploadWriter: Sendable {
  let upload: Upload
  private let number: Int
  private let isOnProbation: Bool

  init(_ upload: Upload, _ number: Int, isOnProbation: Bool) {
    self.upload = upload
    self.number = number
    self.isOnProbation = isOnProbation
  }

  /// Nobody else has taken over.
  var isNewest: Bool { upload.isNewest(number) }

  /// Throws 409 once somebody else has taken over, 410 once the upload is terminated, 413 past the length; what was
  /// written before stays.
  func append(_ piece: BodyPiece) throws(ServerError) { try upload.append(piece, number) }

  /// The body of the request has come: its bytes count from now on, and with them, in one step, what the request tells of the
  /// whole. `isLast`: the upload ends here. `promised`: digests of the whole. `isAsPromised`: the body is the whole, and has
  /// the digests that it should have.
  ///
  /// Throws 409 once somebody else has taken over, who was told of another state of the upload, and 410 once it is terminated.
  /// false, without effect, where somebody else has taken over and the upload has all its bytes, this request's among them.
  @discardableResult func end(
    isLast: Bool = false, promised: [[Digest.Algorithm: [UInt8]]?] = [], isAsPromised: Bool = false
  ) throws(ServerError) -> Bool {
    try upload.end(
      number, wasOnProbation: isOnProbation, isLast: isLast, promised.compactMap { $0 }, isAsPromised: isAsPromised)
  }

  /// Deletes the bytes on probation, which the upload's offset has never counted.
  func drop() throws(ServerError) { try upload.drop(number) }

  /// Takes back what this writer brought, because of `error`. Bytes that count already cannot be taken back: the upload ends
  /// with them, unless the error may pass. `isCreation`: it ends also with bytes on probation. Without effect once somebody
  /// else has taken over. Returns whether the upload goes on.
  func takeBack(after error: ServerError, isCreation: Bool = false) -> Bool {
    upload.takeBack(number, after: error, isCreation: isCreation)
  }

  /// Ends the upload, unless somebody else has taken over, or it has ended.
  func terminate() { try? upload.terminate(by: number) }

  deinit { upload.stop(number) }
}
