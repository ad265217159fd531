import BlobUpload
import Blobs
import Synchronization

/// Removes the sources of a push of which the destination has proved to have the content.
///
/// All sources are compared first, since the files of a photo are only removed together. Then they are walked once more, and
/// each proved file is removed if it is still the version that was proved. Memory grows by 16 bytes for a file.
struct SourceRemoval: Sendable {
  private let options: PushOptions
  private let run: PushRun
  private let report: any PushReport
  private let proved = ProvedFiles()
  private let folders = SameFolders()

  init(_ options: PushOptions, _ run: PushRun, _ report: any PushReport) {
    (self.options, self.run, self.report) = (options, run, report)
  }

  /// Returns whether every file that was found is removed.
  func run() async throws(UploadError) -> Bool {
    let kept = Atomic(0)
    // A file that an earlier check has compared may have changed at the destination without another date.
    // The keys of sealed files are forgotten, so that only their digests can be compared.
    let downloads = options.verifies && options.seal.sealing == nil
    let check = ContentCheck(run.uploader, run.journal, downloads: downloads, isAnew: true)
    // The push has reported what it could not read.
    var quiet = run
    (quiet.report, quiet.counters) = (SilentReport(), PushCounters())
    let opener = try SourceOpener(options.connection, jobs: options.pace.jobs, quiet.report, quiet.counters, nil)
    let feed = PushFeed(quiet, .byName, edits: options.edits, overwrites: false, omitsMetadata: true, names: nil)
    try await CheckPass(check: check).run(PushWalk(options, quiet.report, quiet.counters), opener, feed) { file in
      let believes = !run.destination.traits.repeatsDigests
      if proved.note(file, believesDigests: believes) { return folders.note(file) }
      kept.add(1, ordering: .relaxed)
      report.failed(file.item.identity, "stays here: \(file.reasonToStay)")
    }
    try await folders.check(check, proved)
    try await run.sendLostNames()
    let removed = try await removeProved(kept)
    let stay = kept.load(ordering: .relaxed)
    report.notice(
      "\(Quantity.plural(removed, "file")) removed here, proved at the destination"
        + (stay > 0 ? "; \(Quantity.grouped(stay)) \(stay == 1 ? "stays" : "stay")" : ""))
    return stay == 0
  }

  private func removeProved(_ kept: borrowing Atomic<Int>) async throws(UploadError) -> Int {
    let walk = PushWalk(options, SilentReport(), PushCounters())
    var (removed, left) = (0, proved.count)
    // The files of a photo are removed by its first one, and are not there any more when their turn comes.
    while let found = await walk.next() {
      let paths = found.compactMap { source in if case .file = source.place { source.identity } else { nil } }
      // A folder is listed once for a batch, because each removal changes it.
      let members = await SourceReads().each([paths]) { PhotoGroups().groups(of: $0) }?.first ?? nil
      guard let members else { break }
      let results = await SourceReads().each(Array(zip(paths, members))) { path, member in
        proved.remove(path, with: member?.names ?? [])
      }
      guard let results else { break }
      for (path, result) in zip(paths, results) {
        switch result {
        case .removed(let files):
          removed += files.count
          left -= files.count
          for file in files { report.removed(file) }
        case .gone, .unproved: break
        case .stays(let reason):
          left -= 1
          kept.add(1, ordering: .relaxed)
          report.failed(path, "stays here: \(reason)")
        case nil:
          left -= 1
          kept.add(1, ordering: .relaxed)
          report.failed(path, "stays here: \(SourceReads().complaint)")
        }
      }
    }
    if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
    if left > 0 {
      kept.add(left, ordering: .relaxed)
      let stay = left == 1 ? "stays" : "stay"
      report.notice("\(Quantity.plural(left, "proved file")) \(stay) here, not found again: run it again")
    }
    return removed
  }
}

extension CheckedFile {
  fileprivate var reasonToStay: String {
    switch result {
    case .same(.digest):
      "the checksum that the destination tells may be what it was told with the file; --verify reads it back"
    case .same where item.isSealed:
      "its size is the same at the destination, and nothing tells there whether its sealed bytes are: "
        + "'fullbore check' with --seal and --download --identity FILE compares them, and deletes nothing"
    case .same: "its size is the same at the destination, which proves nothing; --verify reads it back"
    case .missing: "it is not at the destination"
    case .sealed(let path): "it is not at the destination, where \(path) is"
    case .different(let message): "it is different there: \(message)"
    case .unreadable(let message), .notComparable(let message): message
    }
  }
}

/// Reports nothing: another walk over the same sources has said it.
struct SilentReport: PushReport {
  func began(at endpoint: String, speaking protocolName: String) {}
  func started(_ file: PushedFile) {}
  func finished(_ file: PushedFile, how: Finish) {}
  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {}
  func failed(_ path: BytePath, _ message: String) {}
  func dropped(_ file: PushedFile) {}
  func leftOut(_ path: BytePath, reason: String) {}
  func notice(_ text: String) {}
  func outage(_ outage: Outage) {}
  func ended(_ text: String, _ error: UploadError?) {}
  func summary(_ summary: PushSummary) {}
}
