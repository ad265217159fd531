/// What a source knows of its bytes before they are read.
public struct BlobInfo: Sendable, Hashable {
  /// Bytes; nil when only the end will tell.
  public var length: Int64?
  /// Names the version; nil when the source has no way to tell one from another.
  public var validator: Validator?
  /// The block, in bytes, below which reading is slow; 0 when caching gains nothing.
  public var preferredRead: Int
  /// The validator's `instance` is the same for as long as the content is, also over a restart of the machine: another
  /// one is other content, for all that can be known.
  public var instanceLasts: Bool
  /// Bytes that are worth reading before they are wanted, since each read waits for something; 0 where it does not, as
  /// with files, or where that is done already. See `ReadAheadSource`.
  public var readAhead: Int
  /// Nanoseconds since 1970 when the bytes were last written, as the file system says; nil: not known.
  public var modified: Int64?

  public init(
    length: Int64?, validator: Validator? = nil, preferredRead: Int = 0, instanceLasts: Bool = false,
    readAhead: Int = 0, modified: Int64? = nil
  ) {
    self.readAhead = readAhead
    self.modified = modified
    self.length = length
    self.validator = validator
    self.preferredRead = preferredRead
    self.instanceLasts = instanceLasts
  }

  /// Whether it pays to keep checksums of what is sent: only they can tell the same content under another instance.
  package var wantsTrace: Bool { !instanceLasts && validator?.instance.isEmpty == false }
}

/// Names one version of a source's content, so that two versions are never mixed.
///
/// `version` decides: another one is other content. `instance` is finer and may differ for the same content, as when
/// a card is plugged in again and its files get other device and inode numbers.
public struct Validator: Sendable, Hashable, Codable {
  public var version: String
  public var instance: String

  public init(version: String, instance: String = "") {
    self.version = version
    self.instance = instance
  }

  public enum Likeness: Sendable { case same, unsure, different }

  /// How this validator stands to one that was kept from an earlier run.
  public func likeness(to other: Validator) -> Likeness {
    if version != other.version { return .different }
    return instance == other.instance ? .same : .unsure
  }
}
