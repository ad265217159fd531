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
  /// Proved files that the journal does not have as such yet.
  private let unnoted = Monitor<[JournalIntent]>([])

  init(_ options: PushOptions, _ run: PushRun, _ report: any PushReport) {
    (self.options, self.run, self.report) = (options, run, report)
  }

  /// Returns whether every file that was found is removed.
  func run() async throws(UploadError) -> Bool {
    let kept = Atomic(0)
    // A file that an earlier check has compared may have changed at the destination without another date.
    // The keys of sealed files are forgotten, so that only their digests can be compared.
    let downloads = options.verifies && options.seal.sealing == nil
    var check = ContentCheck(run.uploader, run.journal, downloads: downloads, isAnew: true)
    let folders = SameFolders(check)
    check.confirm = { file async throws(UploadError) in try await confirmed(file, folders) }
    // The push has reported what it could not read.
    var quiet = run
    (quiet.report, quiet.counters) = (SilentReport(), PushCounters())
    let opener = try SourceOpener(options.connection, jobs: options.pace.jobs, quiet.report, quiet.counters, nil)
    let feed = PushFeed(quiet, .byName, edits: options.edits, overwrites: false, omitsMetadata: true, names: nil)
    let walk = PushWalk(options, quiet.report, quiet.counters)
    try await CheckPass(check: check).run(walk, opener, feed) { files in
      for file in files where !isProved(file) {
        kept.add(1, ordering: .relaxed)
        report.failed(file.item.identity, "stays here: \(file.reasonToStay)")
      }
    }
    try await run.sendLostNames()
    try await noteDeletions(atLeast: 1)
    let removed = try await removeProved(kept)
    let stay = kept.load(ordering: .relaxed)
    let verb = stay == 1 ? "stays" : "stay"
    if removed > 0 {
      report.notice(
        "\(Quantity.plural(removed, "file")) removed here, proved at the destination"
          + (stay > 0 ? "; \(Quantity.grouped(stay)) \(verb)" : ""))
    } else if stay > 0 {
      report.notice("\(Quantity.plural(stay, "file")) \(verb) here, and none was removed")
    }
    return stay == 0
  }

  /// Whether the bytes were compared, or a digest that the destination has computed.
  private func isProved(_ file: CheckedFile) -> Bool {
    guard case .same(let evidence) = file.result else { return false }
    return evidence == .bytes || evidence == .digest && !run.destination.traits.repeatsDigests
  }

  /// Notes a file that is proved, and that the destination has besides the one here.
  private func confirmed(_ file: CheckedFile, _ folders: SameFolders) async throws(UploadError) -> CheckedFile {
    guard isProved(file), let version = file.item.info.validator else { return file }
    unnoted.update { $0.append(file.item.intent()) }
    try await noteDeletions(atLeast: 256)
    var file = file
    if file.item.isSealed {
      // The bytes at the destination are others, so it is no file of this folder.
      proved.note(file.item.identity, version)
      return file
    }
    switch try await folders.probe(file) {
    case .success(let stamp): proved.note(file.item.identity, stamp.validator)
    case .failure(let failure): file.result = .unreadable(failure.reason)
    }
    return file
  }

  /// The journal must know which files may be deleted before the first of them is: another source with the name of one
  /// does not replace what may be its only copy.
  private func noteDeletions(atLeast least: Int) async throws(UploadError) {
    let intents = unnoted.update { intents -> [JournalIntent] in
      if intents.count < least { return [] }
      defer { intents = [] }
      return intents
    }
    if intents.isEmpty { return }
    do { try await run.journal.noteDeletions(intents) } catch { throw UploadError(journal: error) }
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
      var staying: [BytePath] = []
      for (path, result) in zip(paths, results) {
        switch result {
        case .removed(let files):
          removed += files.count
          left -= files.count
          for file in files { report.removed(file) }
        case .gone, .unproved: break
        case .stays(let reason):
          staying.append(path)
          left -= 1
          kept.add(1, ordering: .relaxed)
          report.failed(path, "stays here: \(reason)")
        case nil:
          left -= 1
          kept.add(1, ordering: .relaxed)
          report.failed(path, "stays here: \(SourceReads().complaint)")
        }
      }
      do { try await run.journal.forgetDeletions(of: staying) } catch { throw UploadError(journal: error) }
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
