/// The properties of a source that are known before its bytes are read.
public struct BlobInfo: Sendable, Hashable {
  /// Length in bytes; nil when it is known only at the end.
  public var length: Int64?
  /// Identifies the version of the content; nil when the source cannot distinguish versions.
  public var validator: Validator?
  /// The block size, in bytes, below which reads are slow; 0 when buffering gains nothing.
  public var preferredRead: Int
  /// Whether the validator's `instance` stays the same as long as the content does, also across a restart of the
  /// machine. If so, a different instance must be treated as different content.
  public var instanceLasts: Bool
  /// The number of bytes worth reading ahead because each read has latency. 0 when reads have no latency, as with
  /// files, or when the source already reads ahead. See `ReadAheadSource`.
  public var readAhead: Int
  /// Time of the last write in nanoseconds since 1970, as the file system reports it; nil if unknown.
  public var modified: Int64?
  /// Whether opening at an offset takes time in proportion to the offset or to the length, because the source is read up
  /// to there. Such a source is best read from its begin to its end, by one reader.
  public var isSlowToSeek: Bool

  /// Creates a description of a source. `length` is in bytes; nil: it is known only at the end.
  public init(
    length: Int64?, validator: Validator? = nil, preferredRead: Int = 0, instanceLasts: Bool = false,
    readAhead: Int = 0, modified: Int64? = nil, isSlowToSeek: Bool = false
  ) {
    self.isSlowToSeek = isSlowToSeek
    self.readAhead = readAhead
    self.modified = modified
    self.length = length
    self.validator = validator
    self.preferredRead = preferredRead
    self.instanceLasts = instanceLasts
  }

  /// Whether it pays to keep checksums of what is sent. Without a lasting instance, only checksums can show that the
  /// content is the same under a different instance.
  package var wantsTrace: Bool { !instanceLasts && validator?.instance.isEmpty == false }
}

/// Identifies one version of a source's content, so that two versions are never mixed.
///
/// A different `version` means different content. `instance` is finer and may differ for the same content, for example
/// when a memory card is plugged in again and its files get other device and inode numbers.
public struct Validator: Sendable, Hashable, Codable {
  /// Identifies the content: it changes whenever the bytes change.
  public var version: String
  /// Identifies where the content is kept; empty if the source does not distinguish that.
  public var instance: String

  /// Creates a validator. `version` must change whenever the bytes change.
  public init(version: String, instance: String = "") {
    self.version = version
    self.instance = instance
  }

  /// The result of comparing two validators.
  public enum VersionMatch: Sendable {
    /// Version and instance are equal: the bytes are the same.
    case same
    /// The versions are equal, and the instances differ: the caller has to compare bytes.
    case unsure
    /// The versions differ: the bytes count as changed.
    case different
  }

  /// Compares this validator with one that was saved in an earlier run.
  public func match(with other: Validator) -> VersionMatch {
    if version != other.version { return .different }
    return instance == other.instance ? .same : .unsure
  }
}

extension BlobInfo {
  package func with(length: Int64?) -> BlobInfo {
    var info = self
    info.length = length
    return info
  }

  func with(readAhead bytes: Int) -> BlobInfo {
    var info = self
    info.readAhead = bytes
    return info
  }
}
