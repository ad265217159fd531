import BlobUpload
import Blobs
import Glibc

/// The sources of journal entries, as they are now.
actor ResumeWalk: SourceWalk {
  private var elsewhere: ArraySlice<JournalEntry>
  private var files: ArraySlice<JournalEntry>
  private let renderer = FoundRenderer()
  private let report: any PushReport
  private let counters: PushCounters
  private let reads = SourceReads()

  init(_ entries: [JournalEntry], _ report: any PushReport, _ counters: PushCounters) {
    elsewhere = entries.filter(\.isElsewhere)[...]
    files = entries.filter { !$0.isElsewhere }[...]
    self.report = report
    self.counters = counters
  }

  func next() async -> [FoundSource]? {
    while let entry = elsewhere.popFirst() {
      let (source, arrival) = (entry.intent.source, entry.intent.path)
      if !URLSource.isURL(source) { return [FoundSource(.url(source.description), source, as: arrival)] }
      if let url = URLSource(kept: source) { return [FoundSource(.url(url.url.text), source, as: arrival)] }
      fail(source, "the query of its URL is not kept, since it may be secret: run the push again")
    }
    while !files.isEmpty {
      let batch = Array(files.prefix(PushWalk.batch))
      files = files.dropFirst(PushWalk.batch)
      let seen = await reads.each(batch) { [renderer] entry in
        (stamp(of: entry.intent.source), FoundRendition.Finding(kept: entry.intent, renderer))
      }
      guard let seen else { return nil }
      let found = zip(batch, seen).compactMap { entry, seen -> FoundSource? in
        if let (stamp, rendition) = seen { return place(entry, stamp, rendition) }
        fail(entry.intent.source, reads.complaint)
        return nil
      }
      if !found.isEmpty { return found }
    }
    counters.isListed.store(true, ordering: .relaxed)
    return nil
  }

  private func place(
    _ entry: JournalEntry, _ stamp: FileStamp?, _ rendition: FoundRendition.Finding
  ) -> FoundSource? {
    switch rendition {
    case .none: break
    case .rendered(let found):
      counters.found(length: nil)
      return found
    case .refused(let reason):
      fail(entry.intent.source, "its edit cannot be rendered any more: \(reason)")
      return nil
    }
    if entry.intent.source == FoundSource.standardInputIdentity {
      fail(
        entry.intent.path,
        "it came through standard input, which cannot be read again: push it anew, or end it with "
          + "'fullbore abort \(entry.id)'")
      return nil
    }
    guard let stamp else {
      fail(entry.intent.source, "it is not there any more")
      return nil
    }
    counters.found(length: stamp.size)
    return FoundSource(.file(stamp), entry.intent.source, as: entry.intent.path)
  }

  private func fail(_ source: BytePath, _ message: String) {
    counters.notFound()
    report.failed(source, message)
  }
}

extension JournalEntry {
  /// No file of this machine.
  fileprivate var isElsewhere: Bool { URLSource.isURL(intent.source) || intent.source.hasScheme("sqlite") }
}

private func stamp(of path: BytePath) -> FileStamp? {
  var status = stat()
  return path.status(&status) == 0 ? FileStamp(status, at: path) : nil
}
