/// A finished upload.
public struct UploadResult: Sendable, Codable, Hashable {
  /// The location that the server reports. With tus and the IETF's protocol this may be the URL of the upload, which the
  /// server forgets, and not that of the file: `UploadDestination.target` has that one.
  public var location: String?
  /// State of the protocol that later questions about the file need, under its own keys.
  public var state: [String: String]
  /// The body of the server's response, at most 64 KiB of it.
  public var reply: [UInt8]
  /// Bytes of the whole file that the server reports; nil: it reports none. In the result of a finished upload: the
  /// length of the source, which was compared with that number.
  public var length: Int64?
  /// The server already had the same bytes under the name, and has stored nothing.
  public var wasThere = false
  /// The state of the group of the upload; nil: the upload belongs to no group, or the server has published the group before.
  package var group: GroupOutcome?
  package enum GroupOutcome: String, Sendable, Codable {
    /// The server has all bytes, and gives the file its name once the other members have arrived.
    case waiting
    /// The server has published all members with this upload.
    case published
  }
  /// The server's bytes were found equal to those of the source, by reading them back or by a digest. They may have
  /// been sent by another upload.
  public var isCompared: Bool

  /// The session of temporary files that stay at the server until a later run deletes them; nil: none stay.
  var leftover: UploadSession?

  /// The digest that `UploadQueue.digest` asks for, of the bytes that were read to be sent; nil: none was asked for, or they
  /// were not read in order from the first to the last.
  package var digest: [UInt8]?

  /// Creates a result. `length` is what the server reports in bytes; nil: it reports none.
  public init(
    location: String? = nil, state: [String: String] = [:], reply: [UInt8] = [], length: Int64? = nil,
    isCompared: Bool = false
  ) {
    self.location = location
    self.state = state
    self.length = length
    self.isCompared = isCompared
    self.reply = reply.count <= 64 << 10 ? reply : Array(reply.prefix(64 << 10))
  }

  /// The location as stored in the journal, with the version that the server gave to the stored file as fragment.
  var journaled: String? { state["version"].map { "\(location ?? "")#\($0)" } ?? location }
}
