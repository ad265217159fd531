import BlobClient
import BlobHTTP
import BlobMedia
import BlobUpload
import Blobs

/// Turns found sources of every kind into upload items, for `push`, `resume` and `watch`.
struct PushFeed: Sendable {
  /// How files are opened.
  enum Files: Sendable {
    /// By their names: a renamed file is another file.
    case byName
    /// Kept open: a file that is renamed while it waits or is read is still sent under the name it was found by. nil:
    /// the file is open only while it is read.
    case held(RenameTracker?)
  }

  let run: PushRun
  let files: Files
  /// nil: the protocol carries no metadata, or nothing is sent.
  let telling: GalleryMetadata?
  let overwrites: Bool
  /// The server is not told when files were last modified.
  let omitsTimes: Bool
  /// nil: all names differ anyway, as in a single folder.
  let names: ClaimedNames?
  /// Gives the files of one photo the same number; nil: files get no other names.
  let groups: GroupNumbers?
  let photos = PhotoGroups()
  /// The groups that have a name at the destination, without what tells their files apart.
  let stems = ClaimedNames()
  /// Called for a file that is not sent.
  let refused: @Sendable (UploadItem, UploadError) -> Void
  private let resolver: SourceResolver
  private let questions = SourceProbes()

  init(
    _ run: PushRun, _ files: Files, edits: GalleryEdits? = nil, overwrites: Bool, omitsTimes: Bool = false,
    omitsMetadata: Bool = false, names: ClaimedNames?, refused: (@Sendable (UploadItem, UploadError) -> Void)? = nil
  ) throws(UploadError) {
    self.run = run
    self.names = names
    groups =
      run.onConflict == .rename
      ? GroupNumbers(waitsForUnseen: run.waitsForOthers) { item, number in
        guard let numbered = item.under(number, run.destination) else { return nil }
        return names?.take(numbered.target.path, for: item.identity) == false ? nil : numbered
      } : nil
    self.refused =
      refused ?? { item, error in
        PushObserver(report: run.report, counters: run.counters, skips: run.onConflict == .skip)
          .ended(item, nil, .failed(error))
      }
    telling = run.destination.traits.carriesMetadata && !omitsMetadata ? GalleryMetadata(edits: edits) : nil
    self.files = files
    self.overwrites = overwrites
    self.omitsTimes = omitsTimes
    // A separate transport, because sending and reading over the same one could wait for each other's connections.
    let reading = try run.connection.readingTransport(jobs: run.jobs)
    resolver =
      SourceResolver.files.addingHTTP(
        over: reading, retries: run.connection.retries ?? HTTPRangeSource.usualRetries,
        notice: { [report = run.report] in report.notice($0) }
      ).withDatabases
  }

  /// The next items; nil at the end of the walk. A source at a URL is returned when its server has responded, so
  /// sources that were found after it may come before it.
  func next(of walk: some SourceWalk) async -> [UploadItem]? {
    // Reading on after a cancellation would skip sources that the walk has passed over.
    while !Task.isCancelled {
      var items: [UploadItem] = []
      if let answer = questions.takeAnswer() {
        items = await withOwnNames(item(answer).map { [$0] } ?? [])
      } else if questions.mayAsk {
        if let found = await walk.next() { items = await self.items(found) } else { questions.end() }
      } else if await !questions.wait() {
        return nil
      }
      if !items.isEmpty { return items }
    }
    return nil
  }

  /// Reports sources that cannot be read.
  func items(_ found: [FoundSource]) async -> [UploadItem] {
    var items: [UploadItem] = []
    let told = await tell(of: found)
    for (index, found) in found.enumerated() where !Task.isCancelled {
      switch found.place {
      case .file(let stamp):
        if stamp.size == 0 {
          switch await unsized(found.identity, stamp) {
          case .success(nil): break
          case .success(let source?):
            items.append(item(found, source, BlobInfo(length: nil, modified: stamp.modified)))
            continue
          case .failure(let error):
            fail(found.identity, error)
            continue
          }
        }
        let info = stamp.info
        var item = item(found, source(found.identity, stamp, info), info)
        item.target.metadata = told[index] ?? [:]
        items.append(item)
      case .standardInput:
        run.counters.found(length: nil)
        items.append(item(found, standardInput, BlobInfo(length: nil)))
      case .url(let url):
        if URLSource.isURL(BytePath(url)) {
          ask(found, at: url)
        } else if let item = await item(found, at: url) {
          items.append(item)
        }
      case .rendition(let rendition): if let item = await item(found, rendition) { items.append(item) }
      }
    }
    return await withOwnNames(items)
  }

  /// Metadata by index in `found`. Reads the files, on a thread that may block.
  private func tell(of found: [FoundSource]) async -> [Int: [String: String]] {
    guard let telling else { return [:] }
    let files = found.indices.filter { if case .file = found[$0].place { true } else { false } }
    // A file that blocks is sent without metadata: the upload that reads it reports the problem.
    let told = await SourceReads().each(files) { telling.metadata(of: found[$0].identity) } ?? []
    return Dictionary(uniqueKeysWithValues: zip(files, told).compactMap { index, told in told.map { (index, $0) } })
      .filter { !$0.value.isEmpty }
  }

  /// A file with size 0 may nevertheless have content, as in /proc; then it becomes a source of unknown length. nil:
  /// the file is empty.
  private func unsized(_ path: BytePath, _ stamp: FileStamp) async -> Result<UnsizedFileSource?, BlobError> {
    let result = await BlockingPool.shared.runUntilCancelled { cancel in
      Result { () throws(BlobError) -> UnsizedFileSource? in
        do throws(BlobError) {
          let isNeeded = try UnsizedFileSource.isNeeded(for: path, cancel)
          return isNeeded ? UnsizedFileSource(path, modified: stamp.modified) : nil
        } catch {
          // The file was renamed or deleted meanwhile, which is handled when it is sent.
          if error.code == .notFound { return nil }
          throw error
        }
      }
    }
    return result ?? .failure(BlobError(.cancelled, "open \(path): cancelled"))
  }

  private func source(_ path: BytePath, _ stamp: FileStamp, _ info: BlobInfo) -> any BlobSource {
    switch files {
    case .byName: return FileSource(path)
    case .held(nil): return OpenFileSource(path)
    case .held(let promised?):
      return OpenFileSource(path, found: stamp, info) { cancel throws(BlobError) in
        try promised.place(of: stamp, cancel)
      }
    }
  }

  /// Standard input, which records when it waits for the program that writes into it.
  private var standardInput: any BlobSource {
    let source = DescriptorSource(0)
    guard let waits = run.outage?.sources else { return source }
    return WaitRecordingSource(source: source, host: SourceWaits.standardInput, waits: waits)
  }

  /// Asks the server of a URL source for its properties. The response becomes the item.
  private func ask(_ found: FoundSource, at url: String) {
    run.counters.found(length: nil)
    let host = HTTPURL(url).map { "\($0.host):\($0.port)" } ?? url
    questions.ask(found) { [resolver, waits = run.outage?.sources] cancel throws(BlobError) in
      var source = try resolver.source(for: url)
      if let waits { source = WaitRecordingSource(source: source, host: host, waits: waits) }
      return (source, try source.info(cancel))
    }
  }

  /// nil: the server has nothing to send, which is reported.
  private func item(_ answer: SourceProbes.Answer) -> UploadItem? {
    switch answer.result {
    case .success(let (source, info)):
      run.counters.bytesFound.addClamped(info.length ?? 0)
      return item(answer.found, source, info)
    case .failure(let error):
      fail(answer.found.identity, error)
      return nil
    }
  }

  /// A row or a table of a local database.
  private func item(_ found: FoundSource, at url: String) async -> UploadItem? {
    let asked = await asking.runUntilCancelled { [resolver] cancel in
      Result { () throws(BlobError) in
        let source = try resolver.source(for: url)
        return (source, try source.info(cancel))
      }
    }
    switch asked {
    case nil: return nil
    case .success(let (source, info)):
      run.counters.found(length: info.length)
      return item(found, source, info)
    case .failure(let error):
      if error.code != .cancelled { run.fail(found.identity, error.message) }
      return nil
    }
  }

  private func item(_ found: FoundSource, _ rendition: FoundRendition) async -> UploadItem? {
    switch await rendition.open(needsLength: run.destination.limits.needsLength) {
    case .success(let (source, info)): return item(found, source, info, "image/jpeg")
    case .failure(let error):
      fail(rendition.original, error)
      return nil
    }
  }

  /// Reports a source that was counted as found and did not become an item.
  private func fail(_ path: BytePath, _ error: BlobError) {
    if error.code == .cancelled { return }
    run.counters.failed(length: nil)
    run.counters.isIncomplete.store(true, ordering: .relaxed)
    run.report.failed(path, error.message)
  }

  private func item(
    _ found: FoundSource, _ source: any BlobSource, _ info: BlobInfo, _ contentType: String? = nil
  ) -> UploadItem {
    let name = found.name
    var target = run.destination.target(
      name.path, length: info.length, contentType: contentType ?? ContentType.of(name.path), overwrite: overwrites)
    if !omitsTimes { target.modified = info.modified }
    var item = UploadItem(source: source, info: info, identity: found.identity, target: target)
    if name.counter != nil || name.number > 1 { item.numbered = name }
    return item
  }
}

extension PushRun {
  /// Reports a failure without an item.
  func fail(_ identity: BytePath, _ message: String) {
    counters.notFound()
    report.failed(identity, message)
  }
}

extension ConnectionOptions {
  /// The transport for reading sources at URLs. A source that cannot be read twice holds a connection from the moment
  /// its properties are requested, and so does each server that has not responded yet. There are connections for all of
  /// these in addition to those of the files under way. The number must not adapt to the link: with fewer connections,
  /// waiting sources could hold all connections that the files under way need.
  fileprivate func readingTransport(jobs: Int?) throws(UploadError) -> SocketTransport {
    var options = try transportOptions(connections: nil)
    options.adapts = false
    options.connections = (jobs ?? options.connections) + 16 + SourceProbes.most
    return SocketTransport(options)
  }
}

private let asking = BlockingPool("ask-database", threads: 4, patience: .seconds(5))
