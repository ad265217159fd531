import BlobCrypto
import BlobSQLite
import BlobUpload
import Blobs
import Platform
import Synchronization

/// Compares files of this machine with hash lists.
struct HashListCheck: Sendable {
  /// A list, a chain, a folder `ascmhl` or the folder beside it.
  let file: BytePath
  /// The folder of the files; nil: the one that the lists are for.
  let folder: BytePath?
  let output: OutputOptions

  init(_ arguments: Arguments) throws(UsageError) {
    let allowed: Set = ["mhl", "json", "quiet", "verbose"]
    if let other = CheckOptions.declared.first(where: { !allowed.contains($0.name) && arguments.isGiven($0.name) }) {
      throw UsageError("--mhl compares files of this machine with their hash list: no --\(other.name)")
    }
    if arguments.operands.count > 1 { throw UsageError("--mhl FILE [FOLDER]: one folder at most") }
    if let operand = arguments.operands.first, let destination = try Self.destination(operand) {
      throw UsageError(
        "--mhl compares files of this machine with their hash list, and '\(destination)' is a destination: leave out --mhl to "
          + "compare files with it")
    }
    let given = arguments.value("mhl") ?? ""
    if given.isEmpty { throw UsageError("--mhl: which hash list?") }
    file = given.absolute()
    folder = arguments.operands.first?.absolute()
    output = try OutputOptions(arguments)
  }

  /// The operand, if it is a URL or names a place; nil: it is a folder of this machine.
  private static func destination(_ operand: BytePath) throws(UsageError) -> String? {
    var status = stat()
    if operand.absolute().status(&status) == 0 { return nil }
    let isURL = operand.bytes.firstRange(of: Array("://".utf8)) != nil && !operand.hasScheme("file")
    if !isURL, try Places.destination(operand) == nil { return nil }
    return shown(operand.withoutSecrets)
  }

  func run() async -> ExitStatus {
    let counters = PushCounters(readsOnly: true)
    let report = HashListReport(output, counters)
    let began = ContinuousClock.now
    let ended = await interruptible { await self.check(report, counters) }
    let status: ExitStatus =
      ended?.side == .cancelled ? .interrupted : ended == nil && report.isAllSame ? .ok : .failed
    report.finish(status, ended, elapsed: began.duration(to: .now))
    return status
  }

  private func check(_ report: HashListReport, _ counters: PushCounters) async -> UploadError? {
    do throws(UploadError) {
      let lists = try await KnownHashLists(file, folder, report)
      try await compare(lists, report, counters)
      try await tellMissing(lists, report)
      return nil
    } catch {
      report.ended(error)
      return error
    }
  }

  private func compare(
    _ lists: KnownHashLists, _ report: HashListReport, _ counters: PushCounters
  ) async throws(UploadError) {
    let tree = FileTree([lists.folder.appending("")], TreeOptions(includesHidden: true))
    while true {
      let events = try await readingSource { _, noteRead throws(BlobError) in tree.next(max: 100) { noteRead(1) } }
      if events.isEmpty { return counters.listed() }
      for event in events {
        switch event {
        case .file(let item): try await compare(item, lists, report, counters)
        case .skipped(let path, let reason): report.leftOut(path, reason)
        case .failed(let path, let message): report.unreadable(path, message)
        case .noticed: break
        }
      }
    }
  }

  private func compare(
    _ item: TreeItem, _ lists: KnownHashLists, _ report: HashListReport, _ counters: PushCounters
  ) async throws(UploadError) {
    if item.relative.contains(component: "ascmhl") { return }
    let expected = try await onThread { () throws(SQLiteError) in
      let hashes = try lists.table.earlier(of: item.relative)
      try lists.table.take(item.relative)
      return hashes
    }
    let known = expected.filter { HashListFormat.known.contains($0.format) }
    let length = item.stamp.info.length
    if known.isEmpty {
      if !expected.isEmpty || lists.unknown.contains(item.relative) {
        report.checked(item.relative, item.path, length, .notComparable("its hashes are of no kind that is known here"))
      } else if !lists.ignores(item.relative) {
        report.extra(item.relative)
      }
      return
    }
    counters.found(length: length)
    do throws(UploadError) {
      let different = try await readingSource { cancel, noteRead throws(BlobError) in
        let digests = known.map { Digest($0.format.algorithm) }
        try Digest.read(FileSource(item.path), into: digests, cancel) { count in
          counters.comparedBytes.add(Int64(count), ordering: .relaxed)
          noteRead(count)
        }
        return zip(known, digests).filter { $0.digest != $1.value() }.map { $0.0.format }
      }
      report.checked(
        item.relative, item.path, length,
        different.isEmpty ? .same(.digest) : .different(Self.message(different)))
    } catch {
      if error.side == .cancelled { throw error }
      report.checked(item.relative, item.path, length, .unreadable(error.message))
    }
  }

  private static func message(_ different: [HashListFormat]) -> String {
    let names = different.map(\.rawValue).joined(separator: " and ")
    return different.count == 1
      ? "its \(names) is not that of the hash list" : "its \(names) are not those of the hash list"
  }

  private func tellMissing(_ lists: KnownHashLists, _ report: HashListReport) async throws(UploadError) {
    var last: BytePath = ""
    while true {
      let after = last
      let missing = try await onThread { () throws(SQLiteError) in try lists.table.left(after: after) }
      guard let end = missing.last else { return }
      for path in missing { report.checked(path, nil, nil, .missing) }
      last = end
    }
  }
}
