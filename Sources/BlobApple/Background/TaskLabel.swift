import BlobHTTP
import Blobs

/// Identifies what a background task sends. It is written into the task's description and into the name of the file with
/// its body, so that a later process of the app recognizes both. It contains digests and numbers only.
package struct TaskLabel: Hashable, Sendable {
  package enum Kind: String, Sendable {
    /// The request creates an upload, with or without bytes.
    case create = "c"
    /// The request appends bytes to an upload.
    case append = "a"
    /// The request only asks, or deletes.
    case question = "q"
  }

  /// Digests of the place to which a source is sent, and of that place with the source.
  package var upload: String
  /// A digest of the version of the source.
  package var version: String
  package var kind: Kind
  /// A digest of the request's URL.
  package var place: String
  /// Offset of the body's first byte in the source.
  package var start: Int64
  /// Bytes of the body; nil: there is no body.
  package var length: Int64?
  /// Makes the label unique: 16 hexadecimal digits.
  package var number: String

  private static let mark = "fullbore1"

  init(upload: String, version: String, _ request: HTTPRequest, body: BlobSlice?) {
    self.upload = upload
    self.version = version
    // A proxy may force appends to be sent as POST, so the method does not tell them from creations.
    let isAppend = body != nil && request.headers["Upload-Offset"] != nil
    kind = isAppend ? .append : request.method == "POST" ? .create : .question
    place = Self.place(request.url)
    start = body?.start ?? 0
    length = body?.length
    let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    number = String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }

  /// nil: the text is not a label.
  package init?(_ text: String) {
    let fields = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 8, fields[0] == Self.mark, let kind = Kind(rawValue: fields[3]),
      let start = Int64(digits: fields[5]), [1, 2, 4, 7].allSatisfy({ fields[$0].isDigest })
    else { return nil }
    var length: Int64?
    if fields[6] != "x" {
      guard let bytes = Int64(digits: fields[6]) else { return nil }
      length = bytes
    }
    (upload, version, self.kind, place) = (fields[1], fields[2], kind, fields[4])
    (self.start, self.length, number) = (start, length, fields[7])
  }

  package var text: String {
    [Self.mark, upload, version, kind.rawValue, place, String(start), length.map { String($0) } ?? "x", number]
      .joined(separator: "-")
  }

  static func place(_ url: HTTPURL) -> String { digest(url.text) }

  /// 16 hexadecimal digits.
  static func digest(_ text: String) -> String { digest(Array(text.utf8)) }
  static func digest(_ bytes: [UInt8]) -> String { String(SHA256.hex(of: bytes).prefix(16)) }

  /// Identifies the upload of a source to a place.
  static func upload(of source: BytePath, to target: String, recipient: String?) -> String {
    let place = Array(target.utf8) + [0] + Array((recipient ?? "").utf8)
    return String(
      digest(place).prefix(placeDigits)
        + digest(source.bytes + [0] + place).prefix(16 - placeDigits))
  }
  private static let placeDigits = 8

  /// Whether two uploads go to one place. They may be said to if their places differ, but hardly ever are.
  static func haveOnePlace(_ upload: String, _ other: String) -> Bool {
    place(ofUpload: upload) == place(ofUpload: other)
  }

  /// A digest of the place of an upload.
  static func place(ofUpload upload: String) -> String { String(upload.prefix(placeDigits)) }

  /// Identifies a version of a source. Without a validator versions cannot be told apart, so each one is new.
  static func version(_ info: BlobInfo) -> String {
    guard let validator = info.validator else { return digest("\(UInt64.random(in: 0...UInt64.max))") }
    return digest("\(info.length ?? -1) \(validator.version) \(validator.instance)")
  }
}

extension String {
  fileprivate var isDigest: Bool {
    utf8.count == 16
      && utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 }
  }
}
