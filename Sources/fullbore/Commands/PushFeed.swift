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
  /// Sends the files of one photo in an order, and with the same number if files get other names.
  let groups: GroupNumbers
  let photos = PhotoGroups()
  /// The groups that have a name at the destination, without what tells their files apart.
  let stems = ClaimedNames()
  /// The stems that began with raw files only, each with whether pictures have come to it since.
  let rawStems = ClaimedNames()
  let earlier = EarlierNumbers()
  /// Called for a file that is not sent.
  let refused: @Sendable (UploadItem, UploadError) -> Void

  init(
    _ run: PushRun, _ files: Files, edits: GalleryEdits? = nil, overwrites: Bool, omitsTimes: Bool = false,
    omitsMetadata: Bool = false, names: ClaimedNames?, refused: (@Sendable (UploadItem, UploadError) -> Void)? = nil
  ) {
    self.run = run
    self.names = names
    // Where files get no other names, those that are not found together do not wait for each other.
    groups =
      run.settings.onConflict == .rename
      ? GroupNumbers(waitsForUnseen: run.settings.waitsForOthers) { item, number in
        guard let numbered = item.under(number, run.destination) else { return nil }
        return names?.take(numbered.target.plainPath, for: item.identity) == false ? nil : numbered
      } : GroupNumbers(waitsForUnseen: false, numbering: nil)
    self.refused =
      refused ?? { item, error in
        PushObserver(report: run.report, counters: run.counters, skips: run.settings.onConflict == .skip)
          .ended(item, nil, .failed(error))
      }
    // The metadata of a sealed file is as private as its bytes.
    let tells = run.destination.traits.carriesMetadata && run.destination.sealing == nil && !omitsMetadata
    telling = tells ? GalleryMetadata(edits: edits) : nil
    self.files = files
    self.overwrites = overwrites
    self.omitsTimes = omitsTimes
  }

  /// The items of the next sources of a `SourceOpener`.
  func found(_ opened: [OpenedSource]) async -> PhotoBatches.Found {
    PhotoBatches.Found(items: await items(opened), mayHaveFiles: !opened.isEmpty)
  }

  /// The items under the names that their sources give them. Reports sources that cannot be read.
  func items(_ opened: [OpenedSource]) async -> [UploadItem] {
    var items: [UploadItem] = []
    let metadata = await tell(of: opened.map(\.found))
    for (index, opened) in opened.enumerated() where !Task.isCancelled {
      let found = opened.found
      switch opened.content {
      case .file:
        guard case .file(let stamp) = found.place else { continue }
        let info = stamp.info
        var item = item(found, source(found.identity, stamp, info), info)
        item.target.metadata = metadata[index] ?? [:]
        items.append(item)
      case .unsized:
        guard case .file(let stamp) = found.place else { continue }
        let source = UnsizedFileSource(found.identity, modified: stamp.modified)
        items.append(item(found, source, BlobInfo(length: nil, modified: stamp.modified)))
      case .sources(let sources, let info):
        guard case .rendition(let rendition) = found.place else {
          if let source = sources.first { items.append(item(found, source, info)) }
          continue
        }
        if let item = await item(found, rendition, sources.first, info) { items.append(item) }
      }
    }
    return items
  }

  /// Metadata by index in `found`. Reads the files, on a thread that may block.
  private func tell(of found: [FoundSource]) async -> [Int: [String: String]] {
    guard let telling else { return [:] }
    let files = found.indices.filter { if case .file = found[$0].place { true } else { false } }
    // A file that blocks is sent without metadata: the upload that reads it reports the problem.
    let metadata = await SourceReads().each(files) { telling.metadata(of: found[$0].identity) } ?? []
    return Dictionary(
      uniqueKeysWithValues: zip(files, metadata).compactMap { index, metadata in metadata.map { (index, $0) } }
    )
    .filter { !$0.value.isEmpty }
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

  /// A rendition. If this destination wants the length and it is not known, it is rendered for this destination alone.
  private func item(
    _ found: FoundSource, _ rendition: FoundRendition, _ source: (any BlobSource)?, _ info: BlobInfo
  ) async -> UploadItem? {
    if let source, info.length != nil || !run.destination.limits.needsLength {
      return item(found, source, info, "image/jpeg")
    }
    switch await rendition.open(needsLength: true) {
    case .success(let (source, info)): return item(found, source, info, "image/jpeg")
    case .failure(let error):
      if error.code == .cancelled { return nil }
      run.counters.unreadable()
      run.report.failed(rendition.original, error.message)
      return nil
    }
  }

  private func item(
    _ found: FoundSource, _ source: any BlobSource, _ info: BlobInfo, _ contentType: String? = nil
  ) -> UploadItem {
    var (source, info, contentType) = (source, info, contentType)
    var sealed: SealedUpload?
    if let sealing = run.destination.sealing {
      let upload = SealedUpload(source, sealing)
      sealed = upload
      let length = info.length
      (source, info, contentType) = (upload, upload.sealed(info), "application/octet-stream")
      if let length, let whole = info.length { run.counters.foundBytes(whole - length) }
    }
    let name = name(of: found)
    var target = run.destination.target(
      name.path, length: info.length, contentType: contentType ?? ContentType.of(name.path), overwrite: overwrites)
    if !omitsTimes { target.modified = info.modified }
    var item = UploadItem(source: source, info: info, identity: found.identity, target: target)
    item.sealed = sealed
    if name.counter != nil || name.number > 1 { item.numbered = name }
    return item
  }
}

extension PushFeed {
  /// The name at the destination. An earlier run has chosen it, or the name that the file has here is changed.
  private func name(of found: FoundSource) -> NumberedName {
    if run.destination.sealing == nil || run.isResume { return found.name }
    return .init(Sealing.name(found.name.template, isChosen: run.hasChosenName))
  }
}
