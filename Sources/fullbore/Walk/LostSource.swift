import BlobSQLite
import BlobUpload
import Blobs
import Platform

/// Why the source of an unfinished upload cannot be read again.
enum LostSource: Sendable, Hashable {
  /// The file does not exist any more.
  case gone(BytePath)
  /// An object of another kind has the file's name.
  case replaced(BytePath, FileKind)
  case standardInput
  /// A URL with a query. The query may be secret, so the journal contains only its digest.
  case queryNotKept

  /// nil if the source exists, or if that cannot be determined from here. This call blocks.
  init?(_ identity: BytePath) {
    if identity == FoundSource.standardInputIdentity {
      self = .standardInput
      return
    }
    if URLSource.isURL(identity) {
      if URLSource(kept: identity) != nil { return nil }
      self = .queryNotKept
      return
    }
    var file = FoundRendition.kept(identity)?.original ?? identity
    if identity.hasScheme("sqlite") {
      guard let (table, _) = try? SQLiteBlobTable.parse(identity.description) else { return nil }
      file = table.file
    }
    var status = stat()
    guard file.isAbsolute else { return nil }
    if file.status(&status) == 0 {
      let kind = FileKind(mode: status.st_mode)
      if kind == .file { return nil }
      self = .replaced(file, kind)
    } else {
      guard errno == ENOENT || errno == ENOTDIR else { return nil }
      self = .gone(file)
    }
  }

  var complaint: String {
    switch self {
    case .gone(let file): "the source is gone, \(file)"
    case .replaced(let file, let kind): "the source is gone, \(file): it is \(kind.rawValue) now, and no file"
    case .standardInput: "it came through standard input, which cannot be read again"
    case .queryNotKept: "the query of its URL is not kept, since it may be secret"
    }
  }

  /// Advice on how to send the source nevertheless.
  var remedy: String {
    switch self {
    case .gone, .replaced: "put it back"
    case .standardInput: "push it anew"
    case .queryNotKept: "run the same push again"
    }
  }

  /// The lost sources by entry ID, without entries in progress. Empty if a disk does not respond, since nothing is
  /// known then.
  static func find(_ entries: [JournalEntry]) async -> [Int64: LostSource] {
    let idle = entries.filter { $0.owner == nil }
    let outcome = await SourceReads(patience: .seconds(5)).run { cancel, noteProgress in
      var lost: [Int64: LostSource] = [:]
      for entry in idle where !cancel.isCancelled {
        if let found = LostSource(entry.intent.source) { lost[entry.id] = found }
        noteProgress()
      }
      return lost
    }
    if case .done(let lost) = outcome { return lost }
    return [:]
  }
}
