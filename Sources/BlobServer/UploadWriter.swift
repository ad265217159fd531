/// The right to add bytes, until a newer one is given out.
final class UploadWriter: Sendable {
  let upload: Upload
  private let number: Int

  init(_ upload: Upload, _ number: Int) {
    self.upload = upload
    self.number = number
  }

  /// Throws 409 once somebody else has taken over, 410 once the upload is terminated, 413 past the length; what was
  /// written before stays.
  func append(_ piece: BodyPiece) throws(ServerError) { try upload.append(piece, number) }

  /// The bytes so far count from now on. Throws 409 once somebody else has taken over, 410 once it is terminated.
  func keep() throws(ServerError) { try upload.keep(number) }
  /// Deletes the bytes on probation, which the upload's offset has never counted.
  func drop() throws(ServerError) { try upload.drop(number) }
  /// Takes back what this writer brought, because of `error`. Bytes that count already cannot be taken back: the upload ends
  /// with them, unless the error may pass. Without effect once somebody else has taken over. Returns whether the upload goes on.
  func takeBack(after error: ServerError) -> Bool { upload.takeBack(number, after: error) }

  deinit { upload.stop(number) }
}
