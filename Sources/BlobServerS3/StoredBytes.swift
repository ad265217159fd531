import BlobUpload

/// The bytes of an upload that the bucket has: parts, and a tail that is too short for one. Another process of the server
/// reads this from the notes of the upload.
struct StoredBytes: Sendable {
  struct Piece: Codable, Sendable {
    var receipt: PartReceipt
    /// In hexadecimal. The bytes of a part cannot be read before the object is complete.
    var sha256: String
  }
  struct Tail: Codable, Sendable {
    var length: Int64
    var sha256: String
    /// Whether the second of the two objects for tails has it. A provisional tail is never written over one that is kept.
    var isSecond = false
    /// There is no tail.
    static let none = Tail(length: 0, sha256: "")
  }
  /// A line of the notes. One of the members is there.
  struct Note: Codable, Sendable {
    var session: UploadSession?
    var part: Piece?
    var tail: Tail?
    /// Written before the first tail, so that the objects for tails are deleted in the end.
    var hasTails: Bool?

    var line: String { JSONColumn.encode(self) }
  }

  /// The multipart upload; nil: none was begun.
  private(set) var session: UploadSession?
  private(set) var parts: [Piece] = []
  private(set) var tail = Tail.none
  /// Whether objects for tails may exist.
  private(set) var hasTails = false

  init() {}

  /// Lines that are damaged, as by a power failure, are left out: their bytes are sent again.
  init(notes: [String]) {
    for line in notes { if let note: Note = JSONColumn.decode(line) { take(note) } }
  }

  mutating func take(_ note: Note) {
    if let session = note.session { self.session = session }
    if let part = note.part, part.receipt.number == next {
      parts.append(part)
      tail = .none
    }
    if let tail = note.tail { self.tail = tail }
    if note.hasTails == true { hasTails = true }
  }

  /// The number of bytes in parts.
  var inParts: Int64 { parts.last.map { $0.receipt.start + $0.receipt.held } ?? 0 }
  var length: Int64 { inParts + tail.length }
  var isEmpty: Bool { session == nil && tail.length == 0 }
  /// The number of the next part.
  var next: Int { parts.count + 1 }

  /// The lengths and digests of the pieces of the file, in order.
  var digests: [PieceDigest] { parts.map { PieceDigest(length: $0.receipt.held, sha256: $0.sha256) } }
}

/// The SHA-256 of a piece of a file.
struct PieceDigest: Sendable {
  var length: Int64
  var sha256: String
}
