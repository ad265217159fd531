import BlobHTTP
import Blobs

/// Names an upload; nobody can guess it. 128 random bits as 32 hexadecimal digits.
package struct UploadID: Sendable, Hashable, CustomStringConvertible {
  package let description: String

  /// Digits of the text.
  static let length = 32

  /// Its URL, relative to that of a request.
  func location(from target: RequestTarget) -> String { target.reference(to: "/\(ServedPath.uploadName)/\(self)") }

  package init?(_ text: some StringProtocol) {
    let digits = text.utf8
    guard digits.count == Self.length, digits.allSatisfy({ $0.hexValue != nil && !(65...70).contains($0) }) else {
      return nil
    }
    description = String(text)
  }

  package init(using random: inout some RandomNumberGenerator) {
    description = (0..<2).map { _ in
      let digits = String(random.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

/// What becomes of bytes that are already published under the name.
package enum ExistingRule: RawRepresentable, Sendable, Equatable {
  /// Equal bytes are fine, others are not.
  case keep
  /// They are replaced in one step.
  case replace
  /// They are replaced if they still are the version with this ETag when the new bytes are published. RFC 9110 §13.1.1.
  case replaceVersion(etag: String)
  /// Nothing may be there. RFC 9110 §13.1.2, `If-None-Match: *`.
  case mustBeNew

  private static let versionPrefix = "replace "

  /// How the rule is written in a record.
  package var rawValue: String {
    switch self {
    case .keep: "keep"
    case .replace: "replace"
    case .replaceVersion(let etag): Self.versionPrefix + etag
    case .mustBeNew: "mustBeNew"
    }
  }

  package init?(rawValue: String) {
    switch rawValue {
    case "keep": self = .keep
    case "replace": self = .replace
    case "mustBeNew": self = .mustBeNew
    case _ where rawValue.utf8.starts(with: Self.versionPrefix.utf8):
      self = .replaceVersion(
        etag: String(decoding: rawValue.utf8.dropFirst(Self.versionPrefix.utf8.count), as: UTF8.self))
    default: return nil
    }
  }

  /// Other bytes may take the place of those that are there.
  var replaces: Bool {
    switch self {
    case .replace, .replaceVersion: true
    case .keep, .mustBeNew: false
    }
  }

  /// Throws 412 when the rule is for a version that `item`, nil for a free name, is not.
  func checkVersion(_ item: StoredItem?, at target: ServedPath) throws(ServerError) {
    if case .replaceVersion(let etag) = self, item?.etag != etag {
      throw ServerError(412, "\(target) is not the version that If-Match names")
    }
  }

  /// Throws what keeps bytes of this length, if it is known, away from a name that is taken.
  package func admit(_ item: StoredItem, at target: ServedPath, length: Int64?) throws(ServerError) {
    if item.isFolder { throw ServerError(409, "\(target) is a folder") }
    switch self {
    case .replace: break
    case .replaceVersion: try checkVersion(item, at: target)
    case .mustBeNew: throw ServerError(412, "\(target) exists")
    case .keep:
      if let length, length != item.length {
        throw ServerError(409, "\(target) exists with \(item.length) bytes, these would be \(length)")
      }
    }
  }
}

/// What must be known of an upload besides its bytes.
package struct UploadRecord: Sendable, Equatable {
  package var id: UploadID
  package var target: ServedPath
  package var existing: ExistingRule
  /// Bytes of the whole; nil while the client has not said.
  package var length: Int64?
  /// `Upload-Metadata` as the client sent it. tus 1.0 §Creation.
  package var metadata: String
  /// nil: it is sent as one.
  package var concatenation: Concatenation?
  /// What the client has promised of the whole, in the form of `Repr-Digest`; nil: nothing.
  package var digest: String?
  /// What the published file is to have; nil: the time when its last byte came.
  package var modified: ModificationTime?
  /// The ETag of the file that the upload was published as; nil: it was not published yet, or by a server that did not
  /// write this down.
  package var published: String?

  package init(
    _ id: UploadID, target: ServedPath, existing: ExistingRule = .keep, length: Int64?, metadata: String = "",
    _ concatenation: Concatenation? = nil, modified: ModificationTime? = nil
  ) {
    self.modified = modified
    self.id = id
    self.target = target
    self.existing = existing
    self.length = length
    self.metadata = metadata
    self.concatenation = concatenation
  }

  /// One fact a line, for a small file. Version 2 has what only some uploads have, and says where it ends.
  var text: String {
    let more = [
      concatenation.map { "concat \($0.text)\n" }, digest.map { "digest \($0)\n" },
      modified.map { "mtime \($0.text)\n" }, published.map { "published \($0)\n" },
    ].compactMap { $0 }
    return """
      fullbore upload \(more.isEmpty ? 1 : 2)
      target \(HTTPURL.encode(target.bytes))
      existing \(existing.rawValue)
      length \(length.map { String($0) } ?? "unknown")
      metadata \(metadata)

      """ + (more.isEmpty ? "" : more.joined() + "end\n")
  }

  /// nil for what is not the whole of a record, as after a power cut. Lines and words are told apart by their bytes: what a
  /// client has sent may begin with a combining character.
  init?(_ id: UploadID, _ text: [UInt8]) {
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
      let target = try? ServedPath.fromURL("/\(path)".utf8).path,  // nil says it all
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
      published = next("published")
      guard lines.popFirst()?.elementsEqual("end".utf8) == true else { return nil }
    }
    if lines.count != 1 || lines.first?.isEmpty != true { return nil }
  }
}

/// A saved upload as it was found.
package struct SavedUpload: Sendable {
  package var record: UploadRecord
  /// Bytes held: all of them when it is finished.
  package var offset: Int64
  package var isFinished: Bool
  /// When it will be forgotten. Nanoseconds since 1970.
  package var expires: Int64
}
