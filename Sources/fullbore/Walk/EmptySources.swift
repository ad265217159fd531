import BlobUpload
import Blobs
import Synchronization

/// The sources of a push that contain nothing to send.
///
/// A card that is not mounted looks like an empty folder, so an empty source is a failure. It is not a failure if files
/// from it were sent to the same destination before and none of them is unfinished: the card may have been cleared
/// since. With `--check` it is always a failure, because nothing could be compared.
final class EmptySources: Sendable {
  enum Source: Sendable, Hashable {
    /// The absolute path of a folder.
    case folder(BytePath)
    /// `place` describes the table and its condition. The journal's names of its rows begin with `prefix`.
    case table(place: String, prefix: [UInt8])
  }

  /// The history of an empty source at the destination.
  private enum Finding: Hashable {
    /// Nothing was sent from this source.
    case unknown
    case sent
    case unfinished(Int)
    /// An earlier push ended before all files were listed.
    case unread

    /// The larger one counts where two destinations differ.
    var rank: Int {
      switch self {
      case .sent: 0
      case .unknown: 1
      case .unread: 2
      case .unfinished: 3
      }
    }
  }

  private struct State {
    var found: [Source] = []
    /// Sources that contain only files of the journal in use.
    var withJournal: Set<Source> = []
    var findings: [Source: Finding] = [:]
  }
  private let state = Mutex(State())

  var isEmpty: Bool { state.withLock { $0.found.isEmpty } }

  /// Records an empty source. `hasJournal`: it contains files of the journal in use, which are not sent.
  func note(_ source: Source, hasJournal: Bool = false) {
    state.withLock { state in
      state.found.append(source)
      if hasJournal { state.withJournal.insert(source) }
    }
  }

  /// Looks up in the journal what became of the files of these sources at `destination`, which may be one of several.
  /// - `followsUnread`: an earlier push of the same sources ended before all their files were listed.
  func look(in journal: Journal, destination: Int64, followsUnread: Bool) async throws(UploadError) {
    for source in state.withLock({ $0.found }) {
      do {
        let history = try await source.history(in: journal, destination)
        let finding: Finding =
          history.unfinished > 0
          ? .unfinished(history.unfinished) : followsUnread ? .unread : history.hasSent ? .sent : .unknown
        state.withLock { state in
          if let known = state.findings[source], known.rank >= finding.rank { return }
          state.findings[source] = finding
        }
      } catch {
        throw UploadError(journal: error)
      }
    }
  }

  /// Reports the empty sources. Returns whether they are no failure.
  func tell(_ report: any PushReport, checks: Bool) -> Bool {
    let state = state.withLock { $0 }
    let findings = Dictionary(grouping: state.found) { state.findings[$0] ?? .unknown }
    if let sent = findings[.sent] {
      let said = "\(text(sent)), from which files were sent before"
      if checks { report.ended("\(said): nothing could be checked") } else { report.notice(said) }
    }
    for source in state.found {
      if case .unfinished(let count)? = state.findings[source] {
        report.ended(
          "\(text([source])), and \(Quantity.plural(count, "file")) from there "
            + "\(count == 1 ? "is" : "are") not finished: \(question([source])) 'fullbore status' names "
            + "\(count == 1 ? "it, and 'fullbore abort' gives it" : "them, and 'fullbore abort' gives them") up")
      }
    }
    if let unread = findings[.unread] {
      report.ended(
        "\(text(unread)), and an earlier push ended before it had found all files there: \(question(unread)) "
          + "'fullbore abort --unread' gives that push up")
    }
    if let unknown = findings[.unknown] { report.ended("\(text(unknown)): \(question(unknown))") }
    return findings.keys.allSatisfy { $0 == .sent } && (findings.isEmpty || !checks)
  }

  private func question(_ sources: [Source]) -> String {
    let hasFolder = sources.contains { if case .folder = $0 { true } else { false } }
    return "is it the right \(hasFolder ? "folder, and is it mounted?" : "table and condition?")"
  }

  private func text(_ sources: [Source]) -> String {
    let withJournal = state.withLock { $0.withJournal }
    let places = sources.map { source in
      switch source {
      case .folder(let path) where withJournal.contains(source):
        "\(shown(path)) (the journal of this push is there, which is not sent)"
      case .folder(let path): shown(path)
      case .table(let place, _): place
      }
    }
    return "no files found in \(places.joined(separator: ", "))"
  }
}

extension EmptySources.Source {
  fileprivate func history(in journal: Journal, _ destination: Int64) async throws(JournalError) -> SourceHistory {
    switch self {
    case .folder(let path): try await journal.history(of: path, destination: destination)
    case .table(_, let prefix): try await journal.history(ofNamesBeginning: prefix, destination: destination)
    }
  }
}
