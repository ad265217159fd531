import BlobUpload
import Blobs
import Platform

/// Lists the sources of journal entries in their current state.
actor ResumeWalk: SourceWalk {
  private let pages: any EntryPages
  private var last: JournalEntry?
  private var (hasEnded, wasCancelled) = (false, false)
  /// The entries of this page that are still to be listed: sources that are no local files, and files.
  private var elsewhere: ArraySlice<JournalEntry> = []
  private var files: ArraySlice<JournalEntry> = []
  /// How the names of this page count on, by the entries' ids.
  private var names: [Int64: NumberedName] = [:]
  /// The error that has ended the list early.
  private(set) var failure: JournalError?
  private let renderer = RendererLocator()
  private let report: any PushReport
  private let counters: PushCounters
  private let reads = SourceReads()

  /// Entries that were refused are left out.
  init(_ pages: any EntryPages, _ report: any PushReport, _ counters: PushCounters) {
    self.pages = pages
    self.report = report
    self.counters = counters
  }

  func next() async -> [FoundSource]? {
    repeat {
      if let found = await nextOfPage() { return found }
    } while await turnPage()
    if failure == nil, !wasCancelled { counters.isListed.store(true, ordering: .relaxed) }
    return nil
  }

  /// Returns false if there are no more entries, or if they cannot be read.
  private func turnPage() async -> Bool {
    if hasEnded { return false }
    do throws(JournalError) {
      let page = try await pages.next(after: last)
      last = page.last
      hasEnded = page.isEmpty
      let entries = page.filter { $0.state != .refused }
      elsewhere = entries.filter(\.isElsewhere)[...]
      files = entries.filter { !$0.isElsewhere }[...]
      names = try await pages.journal.numbers.names(of: entries)
    } catch {
      (failure, hasEnded) = (error, true)
    }
    return !hasEnded
  }

  private func nextOfPage() async -> [FoundSource]? {
    while let entry = elsewhere.popFirst() {
      let source = entry.intent.source
      if !URLSource.isURL(source) { return [found(.url(source.description), entry)] }
      if let url = URLSource(kept: source) { return [found(.url(url.url.text), entry)] }
      await fail(entry, .queryNotKept)
    }
    while !files.isEmpty {
      let batch = Array(files.prefix(PushWalk.batch))
      files = files.dropFirst(PushWalk.batch)
      let seen = await reads.each(batch) { [renderer] entry in
        Look(entry.intent, renderer)
      }
      guard let seen else {
        (wasCancelled, hasEnded) = (true, true)
        return nil
      }
      var found: [FoundSource] = []
      for (entry, seen) in zip(batch, seen) {
        if let seen {
          if let source = await place(entry, seen) { found.append(source) }
        } else {
          await fail(entry, entry.intent.source, reads.complaint)
        }
      }
      if !found.isEmpty { return found }
    }
    return nil
  }

  private func place(_ entry: JournalEntry, _ look: Look) async -> FoundSource? {
    let source = entry.intent.source
    if let lost = look.lost {
      await fail(entry, lost)
      return nil
    }
    switch look.rendition {
    case .none: break
    case .rendered(let rendition):
      counters.found(length: nil)
      return found(rendition.place, entry)
    case .refused(let reason):
      await fail(
        entry, source, "its edit cannot be rendered any more: \(reason); 'fullbore abort \(entry.id)' gives it up")
      return nil
    }
    switch look.stamp {
    case .success(let stamp) where !pages.mayBe(stamp, of: entry):
      await fail(entry, source, "another file has this path here")
      return nil
    case .success(let stamp):
      counters.found(length: stamp.size)
      return found(.file(stamp), entry)
    case .failure(let error):
      await fail(entry, source, error.message)
      return nil
    }
  }

  private func found(_ place: FoundSource.Place, _ entry: JournalEntry) -> FoundSource {
    let (source, path) = (entry.intent.source, entry.intent.path)
    // Entries of earlier versions have no number of their own.
    return FoundSource(place, source, names[entry.id] ?? NumberedName(path, of: source.name))
  }

  private func fail(_ entry: JournalEntry, _ lost: LostSource) async {
    let identity = lost == .standardInput ? entry.intent.path : entry.intent.source
    await fail(entry, identity, "\(lost.complaint): \(lost.remedy), or 'fullbore abort \(entry.id)' gives it up")
  }

  private func fail(_ entry: JournalEntry, _ source: BytePath, _ message: String) async {
    do throws(JournalError) {
      if try await pages.giveBack(entry, message) { return }
    } catch {
      (failure, hasEnded) = (error, true)
      return
    }
    counters.notFound()
    report.failed(source, message)
  }
}

extension JournalEntry {
  /// The source is not a local file.
  fileprivate var isElsewhere: Bool { URLSource.isURL(intent.source) || intent.source.hasScheme("sqlite") }
}

/// The current state of a file in the journal. Its initializer blocks.
private struct Look: Sendable {
  let lost: LostSource?
  let stamp: Result<FileStamp, BlobError>
  let rendition: FoundRendition.Finding

  init(_ intent: JournalIntent, _ renderer: RendererLocator) {
    lost = LostSource(intent.source)
    var status = stat()
    if intent.source.status(&status) == 0 {
      stamp = .success(FileStamp(status, at: intent.source))
    } else {
      stamp = .failure(BlobError(.io, String(cString: strerror(errno))))
    }
    rendition = lost == nil ? FoundRendition.Finding(kept: intent, renderer) : .none
  }
}
