/// What the server has of an upload.
public enum Held: Sendable {
  /// The server has all bytes before this offset.
  case upTo(Int64, UploadSession)
  /// The server has these parts.
  case parts([PartReceipt], UploadSession)
  /// The server has the whole file under its name.
  case finished(UploadResult)
}

/// The result of sending a part.
public enum Sent: Sendable {
  /// The server has confirmed the part, or some of its bytes. The session may have changed.
  case receipt(PartReceipt, UploadSession)
  /// The server has the whole file under its name.
  case finished(UploadResult)
}
