import BlobHTTP
import Blobs

/// An unguessable upload id: 128 random bits as 32 hexadecimal digits.
package struct UploadID: Sendable, Hashable, CustomStringConvertible {
  package let description: String

  /// The number of digits.
  static let length = 32

  /// The upload's URL, relative to the URL of a request.
  func location(from target: RequestTarget) -> String { target.reference(to: "/\(ServedPath.uploadName)/\(self)") }

  package init?(_ text: some StringProtocol) {
    let digits = text.utf8
    guard digits.count == Self.length, digits.allSatisfy({ $0.hexValue != nil && !(65...70).contains($0) }) else {
      return nil
    }
    description = String(text)
  }

  /// A new id.
  package static func random() -> UploadID {
    var random = SystemRandomNumberGenerator()
    return UploadID(using: &random)
  }

  package init(using random: inout some RandomNumberGenerator) {
    description = (0..<2).map { _ in
      let digits = String(random.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

/// What happens to a file that is already published under the target's name.
package enum ExistingRule: RawRepresentable, Sendable, Equatable {
  /// The file is kept; the upload succeeds only if it has the same bytes.
  case keep
  /// The file is replaced atomically, whatever its version is.
  case replace
  /// The file is replaced if it still has the version that it had when the request began; nil: there was none. A file that
  /// another upload has published since is kept, unless it has the same bytes: the request may have been waiting for a
  /// slow disk since before that upload began, and have an older version.
  case replaceFound(StoredVersion?)
  /// The file is replaced if it still has this version when the upload is published. RFC 9110 §13.1.1.
  case replaceVersion(StoredVersion)
  /// No file may exist. RFC 9110 §13.1.2, `If-None-Match: *`.
  case mustBeNew

  private static let versionPrefix = "replace "
  /// No ETag begins so, because ETags begin with a quote.
  private static let foundPrefix = "replace found "

  /// The text of the rule in a record.
  package var rawValue: String {
    switch self {
    case .keep: "keep"
    case .replace: "replace"
    case .replaceFound(let version): Self.foundPrefix + (version?.rawValue ?? "")
    case .replaceVersion(let version): Self.versionPrefix + version.rawValue
    case .mustBeNew: "mustBeNew"
    }
  }

  package init?(rawValue: String) {
    switch rawValue {
    case "keep": self = .keep
    case "replace": self = .replace
    case "mustBeNew": self = .mustBeNew
    case _ where rawValue.utf8.starts(with: Self.foundPrefix.utf8):
      let text = String(decoding: rawValue.utf8.dropFirst(Self.foundPrefix.utf8.count), as: UTF8.self)
      let version = StoredVersion(rawValue: text)
      if version == nil, !text.isEmpty { return nil }
      self = .replaceFound(version)
    case _ where rawValue.utf8.starts(with: Self.versionPrefix.utf8):
      let text = String(decoding: rawValue.utf8.dropFirst(Self.versionPrefix.utf8.count), as: UTF8.self)
      guard let version = StoredVersion(rawValue: text) else { return nil }
      self = .replaceVersion(version)
    default: return nil
    }
  }

  /// Whether the rule allows replacing an existing file.
  package var replaces: Bool {
    switch self {
    case .replace, .replaceFound, .replaceVersion: true
    case .keep, .mustBeNew: false
    }
  }

  /// The rule for an upload that begins while `item` is published at its target; nil: nothing is.
  func bound(to item: StoredItem?) -> ExistingRule {
    switch self {
    case .replace: return .replaceFound(item?.version)
    case .replaceVersion(let version):
      // The client knows the ETag only.
      if let item, version.isVersion(of: item) { return .replaceVersion(item.version) }
      return self
    case .keep, .replaceFound, .mustBeNew: return self
    }
  }

  /// Whether a file of this version is replaced without a comparison of its bytes.
  package func replaces(_ item: StoredItem) -> Bool {
    switch self {
    case .replace: true
    case .replaceFound(let version): version?.isVersion(of: item) ?? false
    case .replaceVersion(let version): version.isVersion(of: item)
    case .keep, .mustBeNew: false
    }
  }

  /// The refusal of an upload whose bytes differ from those of the file at its target, which is kept.
  package func hasOtherBytes(_ target: ServedPath) -> ServerError {
    let text = "\(target) exists with other bytes"
    if !replaces { return ServerError(409, text, kind: .nameTaken) }
    return ServerError(409, "\(text), which another upload brought after this one began; push again to replace them")
  }

  /// Throws 412 if the rule requires a version other than `item`; nil: no file exists.
  package func checkVersion(_ item: StoredItem?, at target: ServedPath) throws(ServerError) {
    if case .replaceVersion(let version) = self, !version.isVersion(of: item) {
      throw ServerError(412, "\(target) is not the version that If-Match names")
    }
  }

  /// Throws if bytes of this length (nil: unknown) cannot be published in place of `item`.
  package func admit(_ item: StoredItem, at target: ServedPath, length: Int64?) throws(ServerError) {
    if item.isFolder { throw ServerError(409, "\(target) is a folder", kind: .nameTaken) }
    switch self {
    case .replace: break
    case .replaceFound:
      if let length, length != item.length, !replaces(item) { throw hasOtherBytes(target) }
    case .replaceVersion: try checkVersion(item, at: target)
    case .mustBeNew: throw ServerError(412, "\(target) exists")
    case .keep:
      if let length, length != item.length {
        throw ServerError(409, "\(target) exists with \(item.length) bytes, these would be \(length)", kind: .nameTaken)
      }
    }
  }
}

/// The metadata of an upload.
package struct UploadRecord: Sendable, Equatable {
  package var id: UploadID
  package var target: ServedPath
  package var existing: ExistingRule
  /// Length of the whole file in bytes; nil until the client has declared it.
  package var length: Int64?
  /// `Upload-Metadata` as the client sent it. tus 1.0 §Creation.
  package var metadata: String
  /// nil: the upload is not concatenated.
  package var concatenation: Concatenation?
  /// Digests of the whole file that the client has sent, in the form of `Repr-Digest`; nil: none.
  package var digest: String?
  /// The modification time for the published file; nil: the time when its last byte arrived.
  package var modified: ModificationTime?
  /// The upload ends only when its client says so, by `Upload-Complete: ?1`, and the client has not said so yet. false:
  /// the length alone shows whether the upload is complete, as in tus, and in records of earlier servers.
  package var awaitsEnd: Bool
  /// The files together with which the upload is published; nil: it is published by itself.
  package var group: UploadGroup?
  /// The version of the published file; nil: the upload was not published yet, or by a server version that did not store
  /// it.
  package var published: StoredVersion?
  /// Belongs to the store: the inode of the file that holds the bytes, which it keeps when it is published. nil: the bytes
  /// are in the files of parts, or the server version did not store it.
  var inode: UInt64?

  package init(
    _ id: UploadID, target: ServedPath, existing: ExistingRule = .keep, length: Int64?, metadata: String = "",
    _ concatenation: Concatenation? = nil, modified: ModificationTime? = nil, awaitsEnd: Bool = false,
    group: UploadGroup? = nil
  ) {
    self.modified = modified
    self.group = group
    self.awaitsEnd = awaitsEnd
    self.id = id
    self.target = target
    self.existing = existing
    self.length = length
    self.metadata = metadata
    self.concatenation = concatenation
  }

  /// The record as it was given to the store.
  var asSaved: UploadRecord {
    var record = self
    record.inode = nil
    return record
  }

  /// Whether an upload with this many bytes has all of them, and may be published. Not for a final upload.
  package func isComplete(at offset: Int64) -> Bool { offset == length && !awaitsEnd }

  /// How long the upload is kept after its last byte, in nanoseconds. `expiry`: of most uploads. One without bytes loses
  /// nothing if it goes earlier: its client may have been killed before it noted the upload's URL, and creates another one. A
  /// part is kept, because its client may send the parts before it first.
  package func lifetime(at offset: Int64, _ expiry: Int64) -> Int64 {
    offset > 0 || length == 0 || concatenation != nil ? expiry : min(expiry, Self.emptyLifetime)
  }

  /// One hour: by then a client that waits for a network has most likely asked or sent something.
  package static let emptyLifetime: Int64 = 3_600_000_000_000

  /// The record's text, one field per line. Version 2 has fields that only some uploads need, and ends with a marker
  /// line.
  package var text: String {
    let more = [
      concatenation.map { "concat \($0.text)\n" }, digest.map { "digest \($0)\n" },
      modified.map { "mtime \($0.text)\n" }, awaitsEnd ? "awaits end\n" : nil, group.map { "group \($0.text)\n" },
      published.map { "published \($0.rawValue)\n" }, inode.map { "inode \($0)\n" },
    ].compactMap { $0 }
    return """
      fullbore upload \(more.isEmpty ? 1 : 2)
      target \(HTTPURL.encode(target.bytes))
      existing \(existing.rawValue)
      length \(length.map { String($0) } ?? "unknown")
      metadata \(metadata)

      """ + (more.isEmpty ? "" : more.joined() + "end\n")
  }

  /// Parses a record; nil if it is incomplete, as after a power failure. Lines and words are separated by bytes,
  /// because a client's text may begin with a combining character.
  package init?(_ id: UploadID, _ text: [UInt8]) {
    var lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    func next(_ name: StaticString) -> String? {
      let count = name.utf8CodeUnitCount
      guard let line = lines.first, line.count > count, line[line.startIndex + count] == UInt8(ascii: " "),
        line.starts(with: UnsafeBufferPointer(start: name.utf8Start, count: count))
      else { return nil }
      lines.removeFirst()
      return String(decoding: line.dropFirst(count + 1), as: UTF8.self)
    }
    guard let version = next("fullbore upload"), version == "1" || version == "2", let path = next("target"),
      let target = try? ServedPath.fromURL("/\(path)".utf8).path,  // nil is sufficient: the record is invalid
      let existing = next("existing").flatMap(ExistingRule.init), let length = next("length"),
      let metadata = next("metadata")
    else { return nil }
    let bytes = Int64(length)
    guard bytes ?? 0 >= 0, bytes != nil || length == "unknown" else { return nil }
    self.init(id, target: target, existing: existing, length: bytes, metadata: metadata)
    if version == "2" {
      if let text = next("concat") {
        guard let concatenation = Concatenation(text) else { return nil }
        self.concatenation = concatenation
      }
      digest = next("digest")
      if let text = next("mtime") {
        guard let modified = ModificationTime(text.utf8) else { return nil }
        self.modified = modified
      }
      if let text = next("awaits") {
        guard text == "end" else { return nil }
        awaitsEnd = true
      }
      if let text = next("group") {
        guard let group = UploadGroup(text) else { return nil }
        self.group = group
      }
      if let text = next("published") {
        guard let version = StoredVersion(rawValue: text) else { return nil }
        published = version
      }
      if let text = next("inode") {
        guard let inode = UInt64(text) else { return nil }
        self.inode = inode
      }
      guard lines.popFirst()?.elementsEqual("end".utf8) == true else { return nil }
    }
    if lines.count != 1 || lines.first?.isEmpty != true { return nil }
  }
}

/// A saved upload, as loaded from the store.
package struct SavedUpload: Sendable {
  package var record: UploadRecord
  /// Stored bytes; the full length if the upload is finished.
  package var offset: Int64
  package var isFinished: Bool
  /// Time of its expiry in nanoseconds since 1970.
  package var expires: Int64

  package init(record: UploadRecord, offset: Int64, isFinished: Bool, expires: Int64) {
    (self.record, self.offset, self.isFinished, self.expires) = (record, offset, isFinished, expires)
  }
}
