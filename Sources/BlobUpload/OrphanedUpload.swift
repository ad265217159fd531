import BlobHTTP

/// An upload that was neither completed nor deleted: its bytes are still stored and cost money.
public struct OrphanedUpload: Sendable {
  /// The URL, with the file's name percent-encoded below the destination's URL.
  public let url: HTTPURL
  /// The file's name, as bytes.
  public let name: [UInt8]
  /// The server's identifier of the upload.
  public let id: String
  /// Seconds since 1970; nil: unknown.
  public let begun: Int64?
  /// Seconds since its beginning, by the clock of the server that has listed it; nil: unknown.
  package var age: Int64?
  /// The number of its parts.
  public var parts = 0
  /// Bytes of all its parts.
  public var bytes: Int64 = 0

  /// Creates a description of an upload. `begun` is in seconds since 1970; nil: unknown.
  public init(url: HTTPURL, name: [UInt8], id: String, begun: Int64?) {
    self.url = url
    self.name = name
    self.id = id
    self.begun = begun
  }
}
