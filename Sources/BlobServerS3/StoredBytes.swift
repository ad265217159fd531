import BlobServer
import BlobUpload
import Blobs

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
    /// The generation of the upload whose objects these are; nil: 0.
    var generation: Int?
    /// There is no tail.
    static let none = Tail(length: 0, sha256: "")

    var name: TailName { TailName(generation: generation ?? 0, isSecond: isSecond) }
  }
  /// A line of the notes. One of the members is there.
  struct Note: Codable, Sendable {
    var session: UploadSession?
    var part: Piece?
    var tail: Tail?
    /// Written before the first tail, so that the objects for tails are deleted in the end.
    var hasTails: Bool?
    /// Another server has taken the claim of a server that may still be sending bytes. What these become is not used: the next
    /// part has a number, and the next tail a name, that the other server has not used.
    var isTakenOver: Bool?

    var line: String { JSONColumn.encode(self) }
  }

  /// The multipart upload; nil: none was begun.
  private(set) var session: UploadSession?
  private(set) var parts: [Piece] = []
  private(set) var tail = Tail.none
  /// How often a server has taken the upload from another one that may still have been sending bytes.
  private(set) var generation = 0
  /// The number of notes.
  private(set) var notes = 0
  /// The generations of which objects for tails may exist.
  private(set) var tailGenerations: Set<Int> = []
  /// The least number that the next part may have.
  private(set) var next = 1

  init() {}

  /// Lines that are damaged, as by a power failure, are left out: their bytes are sent again.
  init(notes: [String]) {
    for line in notes { if let note: Note = JSONColumn.decode(line) { take(note) } }
    self.notes = notes.count
  }

  mutating func take(_ note: Note) {
    notes += 1
    if let session = note.session { self.session = session }
    if let part = note.part, part.receipt.number >= next, part.receipt.start == inParts {
      parts.append(part)
      tail = .none
      next = part.receipt.number + 1
    }
    if let tail = note.tail { self.tail = tail }
    if note.hasTails == true { tailGenerations.insert(generation) }
    if note.isTakenOver == true {
      generation += 1
      next += 1
    }
  }

  /// The number of bytes in parts.
  var inParts: Int64 { parts.last.map { $0.receipt.start + $0.receipt.held } ?? 0 }
  var length: Int64 { inParts + tail.length }
  var isEmpty: Bool { session == nil && tail.length == 0 }
  /// The objects for tails that may exist.
  var tails: [TailName] {
    tailGenerations.flatMap { generation in
      [false, true].map { TailName(generation: generation, isSecond: $0) }
    }
  }

  /// The lengths and digests of the pieces of the file, in order.
  var digests: [PieceDigest] { parts.map { PieceDigest(length: $0.receipt.held, sha256: $0.sha256) } }
}

/// The SHA-256 of a piece of a file.
struct PieceDigest: Sendable {
  var length: Int64
  var sha256: String
}

/// Names an object with bytes of an upload that do not fill a part yet.
package struct TailName: Sendable, Equatable {
  var generation: Int
  var isSecond: Bool

  func text(_ id: UploadID) -> String {
    "\(id)\(generation == 0 ? "" : ".\(generation)").tail\(isSecond ? "2" : "")"
  }

  /// Whether `text` gives an object such a name.
  package static func isName(_ name: BytePath) -> Bool {
    let words = name.description.split(separator: ".", omittingEmptySubsequences: false)
    guard 2...3 ~= words.count, UploadID(words[0]) != nil, ["tail", "tail2"].contains(words.last) else { return false }
    return words.count == 2 || Int(words[1]).map { $0 > 0 } ?? false
  }
}
