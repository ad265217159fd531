import BlobUpload
import Blobs
import Synchronization

/// The sources of a push in which nothing to send was found.
///
/// A card that is not mounted looks like an empty folder, so that an empty source is a failure. One from which files were
/// sent before is none: they may have been deleted since, as on a card that was cleared. With `--check` it is one all the
/// same: whoever asks that everything is there must be told that nothing could be compared.
final class EmptySources: Sendable {
  enum Source: Sendable, Hashable {
    /// Absolute.
    case folder(BytePath)
    /// `place` names the rows that were looked for; the names of the table's rows in the journal begin with `prefix`.
    case table(place: String, prefix: [UInt8])
  }

  private struct State {
    var found: [Source] = []
    var known: Set<Source> = []
  }
  private let state = Mutex(State())

  var isEmpty: Bool { state.withLock { $0.found.isEmpty } }

  func note(_ source: Source) { state.withLock { $0.found.append(source) } }

  /// Asks the journal which of the sources files were sent from before.
  func look(in journal: Journal) async throws(UploadError) {
    for source in state.withLock({ $0.found }) {
      do {
        if try await source.isKnown(in: journal) { state.withLock { _ = $0.known.insert(source) } }
      } catch {
        throw UploadError(journal: error)
      }
    }
  }

  /// Says what was found nowhere. Returns whether that is no failure.
  func tell(_ report: any PushReport, checks: Bool) -> Bool {
    let state = state.withLock { $0 }
    let (known, unknown) = (
      state.found.filter { state.known.contains($0) }, state.found.filter { !state.known.contains($0) }
    )
    if let text = text(known) {
      let said = "\(text), from which files were sent before"
      if checks { report.ended("\(said): nothing could be checked") } else { report.notice(said) }
    }
    if let text = text(unknown) {
      let hasFolder = unknown.contains { if case .folder = $0 { true } else { false } }
      report.ended("\(text): is it the right \(hasFolder ? "folder, and is it mounted?" : "table and condition?")")
    }
    return unknown.isEmpty && (known.isEmpty || !checks)
  }

  /// nil: there are none.
  private func text(_ sources: [Source]) -> String? {
    if sources.isEmpty { return nil }
    let places = sources.map { source in
      switch source {
      case .folder(let path): shown(path)
      case .table(let place, _): place
      }
    }
    return "no files found in \(places.joined(separator: ", "))"
  }
}

extension EmptySources.Source {
  fileprivate func isKnown(in journal: Journal) async throws(JournalError) -> Bool {
    switch self {
    case .folder(let path): try await journal.hasUploads(in: path)
    case .table(_, let prefix): try await journal.hasUploads(beginning: prefix)
    }
  }
}
