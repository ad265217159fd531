import BlobCrypto

/// The permission to append bytes, which is valid until a newer writer begins.
final class UploadWriter: Sendable {
  let upload: Upload
  private let number: Int
  private let isOnProbation: Bool
  private let meter: UploadMeter

  init(_ upload: Upload, _ number: Int, isOnProbation: Bool, _ meter: UploadMeter) {
    self.upload = upload
    self.number = number
    self.isOnProbation = isOnProbation
    self.meter = meter
  }

  /// Whether no newer writer has taken over.
  var isNewest: Bool { upload.isNewest(number) }

  /// Throws 409 if a newer writer has taken over, 410 if the upload was terminated, 413 past the length. Bytes written
  /// before stay.
  func append(_ piece: BodyPiece) throws(ServerError) {
    try upload.append(piece, number)
    meter.add(piece.count)
  }

  /// Ends the request's body: its bytes are accepted, and in the same step what the request says about the whole file.
  /// `isLast`: the upload is complete. `promised`: digests of the whole file. `isAsPromised`: the body is the whole
  /// file, and its digests were verified.
  ///
  /// Throws 409 if a newer writer has taken over, whose client has seen another state of the upload, and 410 if it was
  /// terminated. Returns false, without effect, if a newer writer has taken over and the upload has all its bytes,
  /// including those of this request.
  @discardableResult func end(
    isLast: Bool = false, promised: [[Digest.Algorithm: [UInt8]]?] = [], isAsPromised: Bool = false
  ) throws(ServerError) -> Bool {
    try upload.end(
      number, wasOnProbation: isOnProbation, isLast: isLast, promised.compactMap { $0 }, isAsPromised: isAsPromised)
  }

  /// Deletes the provisional bytes, which the upload's offset does not include.
  func drop() throws(ServerError) { try upload.drop(number) }

  /// Undoes this writer's bytes because of `error`. Bytes already accepted cannot be undone: the upload ends with them,
  /// unless the error is temporary. `isCreation`: the upload also ends if its bytes are provisional. No effect if a
  /// newer writer has taken over. Returns whether the upload continues.
  func takeBack(after error: ServerError, isCreation: Bool = false) -> Bool {
    upload.takeBack(number, after: error, isCreation: isCreation)
  }

  /// Ends the upload, unless a newer writer has taken over or it has already ended.
  func terminate() { try? upload.terminate(by: number) }

  deinit { upload.stop(number) }
}
