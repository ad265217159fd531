import BlobCrypto
import BlobSQLite
import BlobUpload
import Blobs
import Platform

/// Writes the hash lists of a push, once its files are at the destination.
struct HashListRun: Sendable {
  let run: PushRun
  let push: PushOptions
  let folders: ListedFolders
  /// Whether this run writes the lists at the source.
  let writesAtSource: Bool

  private var options: HashListOptions { folders.options }

  /// Reports what a list cannot have. Call it between batches, so that few files wait in memory.
  func flush() async throws(UploadError) {
    for path in try await folders.flush() {
      run.counters.isIncomplete.store(true, ordering: .relaxed)
      run.report.failed(path, "its name has characters that XML does not allow: the hash list is without it")
    }
  }

  /// Writes all lists. A list that cannot be written is reported.
  func finish() async throws(UploadError) {
    try await flush()
    let counters = run.counters
    // The hashes of an incomplete folder would be those of no folder.
    let isWhole =
      !counters.isIncomplete.load(ordering: .relaxed) && counters.files.failed == 0
      && counters.files.skipped == 0
    // The lists at both places have the same bytes, by which the one at the destination is known as that of the source.
    let seconds = FileStamp.now / 1_000_000_000
    for root in folders.roots {
      guard let table = folders.table(ofListed: root) else { continue }
      if options.place != .source {
        await report { () async throws(UploadError) in
          let place = HashListAtDestination(run: run, root: root.path)
          let chain = try await write(table, to: place, beside: root, isWhole: isWhole, at: seconds)
          try await tellLost(of: root, at: place, chain)
        }
      }
      if options.place == .destination || !writesAtSource { continue }
      await report { () async throws(UploadError) in
        guard let source = root.source else {
          throw UploadError(.giveUp, .file, "at the source, its files are no single folder")
        }
        do throws(UploadError) {
          let place = HashListBesideFiles(folder: source)
          _ = try await write(table, to: place, beside: root, isWhole: isWhole, at: seconds)
        } catch {
          var error = error
          error.message = advised(error.message, HashListBesideFiles.advice(for: error))
          throw error
        }
      }
    }
    if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
  }

  private func report(_ body: () async throws(UploadError) -> Void) async {
    do throws(UploadError) { try await body() } catch {
      run.counters.isIncomplete.store(true, ordering: .relaxed)
      if error.side != .cancelled { run.report.ended("no hash list: \(error.message)", error) }
    }
  }

  /// Returns the chain with the new list.
  private func write(
    _ table: HashListTable, to place: some HashListPlace, beside root: ListedFolders.Root, isWhole: Bool,
    at seconds: Int64
  ) async throws(UploadError) -> HashListChain {
    var chain = try await place.chain()
    let isNew = chain.generations.isEmpty
    if isNew, let own = try await onlyHistory(of: root), place.title != own.title {
      // The history that came with the files continues at the destination.
      chain = try await copy(own, to: place)
    }
    try await onThread { () throws(SQLiteError) in try table.forgetEarlier() }
    for generation in chain.generations {
      let bytes = try await place.list(generation)
      _ = try await readHashList(bytes, place.shownName(generation.name), into: table)
    }
    let isWhole = try await complete(table) && isWhole
    let (failed, replaced) = try await onThread { () throws(SQLiteError) in try table.judge() }
    for path in failed {
      run.counters.isIncomplete.store(true, ordering: .relaxed)
      run.report.failed(
        path,
        "it has other bytes than the hash lists at \(place.title) say, and is 'failed' in the new one; if it was changed on "
          + "purpose, touch it and push with --overwrite")
    }
    if replaced > 0 {
      run.report.notice(
        "\(place.title): \(Quantity.plural(replaced, "file")) with other bytes than earlier lists say: replaced by this push, "
          + "and 'original' in the new list")
    }
    let facts = facts(seconds, hasFolders: isWhole)
    let format = options.format
    let count = try await onThread { () throws(SQLiteError) in
      if facts.hasFolders { try FolderHashes.add(to: table, format) }
      return try table.count()
    }
    if count == 0 { return chain }
    let source = try await readingSource { _, _ throws(BlobError) in try HashListSource(table, facts) }
    let name = HashListChain.name(chain.next, of: place.folderName, at: seconds)
    let number = chain.next
    try await place.write(source, source.whole, as: name, replaces: false)
    chain.generations.append(.init(number: number, name: name, c4: source.c4))
    let text = DataSource(chain.text)
    try await place.write(text, text.info, as: HashListChain.name, replaces: !isNew)
    run.report.notice("\(place.title)\(name): hash list \(number), of \(Quantity.plural(count, "file"))")
    return chain
  }

  /// The history of the sources that arrive in one folder; nil: none of them has one, or several have.
  private func onlyHistory(of root: ListedFolders.Root) async throws(UploadError) -> HashListBesideFiles? {
    var found: [HashListBesideFiles] = []
    for source in root.sources {
      let own = HashListBesideFiles(folder: source)
      if try await !own.chain().generations.isEmpty { found.append(own) }
    }
    return found.count == 1 ? found[0] : nil
  }

  /// Reports the histories of the sources that have lists which the one at the destination does not have: a push sends no
  /// lists as files.
  private func tellLost(
    of root: ListedFolders.Root, at place: HashListAtDestination, _ chain: HashListChain
  ) async throws(UploadError) {
    let known = Set(chain.generations.map(\.c4))
    for source in root.sources {
      let own = HashListBesideFiles(folder: source)
      let lost = try await own.chain().generations.filter { !known.contains($0.c4) }.count
      if lost == 0 { continue }
      run.counters.isIncomplete.store(true, ordering: .relaxed)
      run.report.ended(
        "\(own.title): \(Quantity.plural(lost, "hash list")) not at the destination, since \(place.title) has another history; "
          + "push \(shown(source)) into a folder of its own to continue it there")
    }
  }

  /// Copies the lists of a history that the files have brought with them.
  private func copy(_ own: HashListBesideFiles, to place: some HashListPlace) async throws(UploadError) -> HashListChain
  {
    let chain = try await own.chain()
    for generation in chain.generations {
      let list = DataSource(try await own.list(generation))
      try await place.write(list, list.info, as: generation.name, replaces: false)
    }
    return chain
  }

  /// Reads the files of which a hash is wanted that was not made on the way. Returns whether all of them could be read.
  private func complete(_ table: HashListTable) async throws(UploadError) -> Bool {
    var (last, areAllRead): (BytePath, Bool) = ("", true)
    while true {
      let (after, format) = (last, options.format)
      let files = try await onThread { () throws(SQLiteError) in try table.incomplete(after: after, format) }
      guard let end = files.last?.file.path else { return areAllRead }
      last = end
      for (file, formats) in files {
        do throws(UploadError) {
          let digests = try await Self.digests(of: file, formats)
          try await onThread { () throws(SQLiteError) in
            let now = FileStamp.now / 1_000_000_000
            for (format, digest) in zip(formats, digests) { try table.add(digest, format, of: file.path, date: now) }
          }
        } catch {
          if error.side == .cancelled { throw error }
          areAllRead = false
          run.counters.isIncomplete.store(true, ordering: .relaxed)
          run.report.failed(file.source ?? file.path, "the hash list is without it: \(error.message)")
          try await onThread { () throws(SQLiteError) in try table.remove(file.path) }
        }
      }
    }
  }

  private static func digests(
    of file: HashListFile, _ formats: [HashListFormat]
  ) async throws(UploadError) -> [[UInt8]] {
    guard let path = file.source else {
      throw UploadError(.giveUp, .source, "it was not read in order when it was sent, and cannot be read again")
    }
    return try await readingSource { cancel, noteRead throws(BlobError) in
      let source = FileSource(path)
      let info = try source.info(cancel)
      if info.length != file.size || info.modified != file.modified {
        throw BlobError(.changed, "\(path): it has changed since it was sent")
      }
      let digests = formats.map { Digest($0.algorithm) }
      try Digest.read(source, into: digests, cancel, noteRead: noteRead)
      return digests.map { $0.value() }
    }
  }

  private func facts(_ seconds: Int64, hasFolders: Bool) -> HashListFacts {
    let filter = push.tree.filter
    let patterns =
      [".DS_Store", "ascmhl", "ascmhl/"] + (push.tree.includesHidden ? [] : [".*"])
      + filter.excludes.map(\.pattern).filter(\.canBeInXML).map(\.description)
    let (count, begin) = (folders.count, "Hashes of the bytes that were read at the source")
    let comment =
      count.compared == 0
      ? "\(begin)."
      : count.compared == count.all
        ? "\(begin); all were compared with the destination."
        : "\(begin); \(count.compared) of \(Quantity.plural(count.all, "file")) were compared with the destination by this push."
    return HashListFacts(
      date: seconds, host: MulticastName.ownHost() ?? "unknown", version: Release.version, ignored: patterns,
      comment: comment,
      format: options.format, hasFolders: hasFolders)
  }
}
