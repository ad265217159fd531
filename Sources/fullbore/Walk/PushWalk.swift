import BlobUpload
import Blobs

/// Lists the sources of a push: URLs first, then rows of databases, then files.
actor PushWalk: SourceWalk {
  static let batch = 128
  private static let few = 16
  nonisolated let promised: RenameTracker
  nonisolated let tally: FilterStatistics
  nonisolated let emptySources = EmptySources()
  private let options: PushOptions
  /// Selects files as `watch` does.
  private let isWatch: Bool
  private let report: any PushReport
  let counters: PushCounters
  private var files: ListedTree
  private let reads: SourceReads
  private let databases: DatabaseWalk
  private var named: ArraySlice<NamedSource>
  /// The options for destinations that may give a folder another name, until the user knows that one does.
  private var renaming: [PushOptions]

  /// A source that is named by itself, not a file of a folder.
  private enum NamedSource {
    case standardInput
    case url(URLSource)
  }

  /// The files that were not handed out.
  private struct ListedTree {
    var tree: FileTree
    /// Batches that `lookAhead` has already listed.
    private var batches: [[TreeEvent]] = []

    init(_ tree: FileTree) { self.tree = tree }

    mutating func keep(_ events: [TreeEvent], first count: Int) {
      batches = [events.prefix(count), events.dropFirst(count)].filter { !$0.isEmpty }.map(Array.init)
    }

    mutating func takeBatch() -> [TreeEvent]? { batches.isEmpty ? nil : batches.removeFirst() }
  }

  init(
    _ options: PushOptions, _ report: any PushReport, _ counters: PushCounters, isWatch: Bool = false,
    setAside: SetAsideName.Rule = .passOver,
    reads: SourceReads = SourceReads(),
    entering: @escaping @Sendable (BytePath, BytePath) -> Void = { _, _ in }
  ) {
    self.reads = reads
    self.isWatch = isWatch
    self.options = options
    self.report = report
    self.counters = counters
    renaming = options.all.filter { $0.layout == nil && !$0.destination.isFolder }
    named = options.readsStandardInput ? [.standardInput] : options.urls.map { .url($0) }[...]
    let roots = options.readsStandardInput ? [] : options.sources
    let namesHidden = options.output.isVerbose || options.output.isJSON
    tally = FilterStatistics(
      foundHidden: { path in
        counters.hidden()
        if namesHidden { report.leftOut(path, reason: "its name begins with a dot; --hidden sends it") }
      }, foundNothing: { [emptySources] in emptySources.note(.folder($0), hasJournal: $1) })
    var tree = options.tree
    tree.setAside = setAside
    files = ListedTree(FileTree(roots, tree, counting: tally, entering: entering))
    promised =
      options.also.isEmpty
      ? RenameTracker(roots, options.tree) : RenameTracker(roots, options.tree, most: SharedWalk.most)
    databases = DatabaseWalk(
      options.databases, as: options.nameOfOne, others: options.also.map(\.nameOfOne), report, counters, emptySources
    ) { [tally, filter = options.tree.filter] in tally.chooses($0, filter) }
  }

  /// An upper bound of the number of sources, at most 64, from listing the first of them. Call this before `next`.
  func lookAhead() async -> Int {
    let most = 64
    if !options.databases.isEmpty { return most }
    let events = await walkTree(atMost: most)
    // The first batch is small, so that the first byte need not wait until all of them are claimed.
    files.keep(events, first: Self.few)
    return min(most, named.count + events.count)
  }

  func next() async -> [FoundSource]? {
    // URLs are returned one at a time: the feed asks the server of each URL, and requests the next URL when it may ask
    // another server.
    while let source = named.popFirst() {
      if let found = found(source) { return [found] }
    }
    if let rows = await databases.next() { return rows }
    return await nextFiles()
  }

  /// nil: the source is left out because of its name.
  private func found(_ source: NamedSource) -> FoundSource? {
    switch source {
    case .standardInput:
      counters.listed()
      let identity = FoundSource.standardInputIdentity
      func name(_ options: PushOptions) -> BytePath { options.name ?? options.nameOfOne ?? identity }
      if !tally.chooses(name(options), options.tree.filter) { return nil }
      return FoundSource(.standardInput, identity, as: name(options), others: options.also.map(name))
    case .url(let source):
      let name = source.hasName ? source.name : options.nameOfOne ?? source.name
      if !tally.chooses(name, options.tree.filter) { return nil }
      return FoundSource(
        .url(source.url.text), source.identity, as: options.nameOfOne ?? source.name,
        others: options.also.map { $0.nameOfOne ?? source.name })
    }
  }

  private func nextFiles() async -> [FoundSource]? {
    while !Task.isCancelled {
      var events = files.takeBatch() ?? []
      if events.isEmpty { events = await walkTree(atMost: Self.batch) }
      if events.isEmpty { break }
      let found = await sources(in: events)
      if !found.isEmpty { return found }
    }
    if Task.isCancelled { return nil }
    if options.hasOnlyFiles, emptySources.isEmpty, counters.files.found == 0,
      tally.complaint(options.tree.filter) == nil
    {
      // There were files, but all of them were left out, for example by --edits.
      for source in options.sources { emptySources.note(.folder(source.absolute())) }
    }
    counters.listed()
    return nil
  }

  /// The next events; empty at the end or when the task is cancelled. Abandons a folder that hangs, and continues with
  /// the next one.
  private func walkTree(atMost most: Int) async -> [TreeEvent] {
    let walked = files.tree
    switch await reads.run({ _, noteProgress in walked.next(max: most, noteProgress: noteProgress) }) {
    case .done(let events): return events
    case .cancelled: return []
    case .stuck:
      let (events, place, rest) = walked.abandon()
      files.tree = rest
      return events + [.failed(place, message: "\(reads.complaint) The rest of that folder was not looked at")]
    }
  }

  /// The result of reading a file and the files beside it.
  private enum Look: Sendable {
    /// The file was found before under another name.
    case known
    case leftOut(String)
    case at(BytePath, others: [BytePath], edit: FoundRendition.Finding)
  }

  /// This call blocks. Once the walk was abandoned, the call has no further effect.
  private nonisolated func look(at event: TreeEvent) -> Look {
    guard case .file(let item) = event, promised.take(item) else { return .known }
    if isWatch, UnfinishedName.matches(item.path.name) { return .leftOut(UnfinishedName.reason) }
    switch options.placing(of: item) {
    case .at(let arrival):
      // The files that are left out are the same for all destinations.
      let others = options.also.map { other in
        if case .at(let path) = other.placing(of: item) { path } else { arrival }
      }
      return .at(arrival, others: others, edit: edit(of: item))
    case .leftOut(let reason): return .leftOut(reason)
    }
  }

  /// This call blocks.
  private nonisolated func edit(of item: TreeItem) -> FoundRendition.Finding {
    if !isWatch { return options.edit(of: item) }
    return options.hasEdit(item) ? .refused("a watch renders none") : .none
  }

  /// For each event the file, its rendered edit, both, or nothing. Finding the destination may read the file.
  private func sources(in events: [TreeEvent]) async -> [FoundSource] {
    for event in events where !renaming.isEmpty {
      let notices = renaming.compactMap { $0.renaming(of: event) }
      for notice in notices { report.notice(notice) }
      if !notices.isEmpty { renaming = [] }
    }
    guard let looks = await reads.each(events, { [self] in look(at: $0) }) else { return [] }
    return zip(events, looks).flatMap { event, look in sources(in: event, look) }
  }

  private func sources(in event: TreeEvent, _ look: Look?) -> [FoundSource] {
    switch event {
    case .file(let item):
      switch look {
      case .known: return []
      case .leftOut(let reason): leaveOut(item.path, reason)
      case .at(let arrival, let others, let edit):
        return original(FoundSource(.file(item.stamp), item.path, as: arrival, others: others), item.stamp.size, edit)
      case nil: fail(item.path, reads.complaint)
      }
    case .skipped(let path, let reason): leaveOut(path, reason)
    case .failed(let path, let message): fail(path, message)
    case .noticed(let text): report.notice(text)
    }
    return []
  }

  private func fail(_ path: BytePath, _ message: String) {
    counters.notFound()
    report.failed(path, message)
  }

  private func original(_ original: FoundSource, _ size: Int64, _ edit: FoundRendition.Finding) -> [FoundSource] {
    switch edit {
    case .none: break
    case .refused(let reason):
      report.notice("\(original.identity): its edit is not rendered, the original is sent: \(reason)")
    case .rendered(let rendition):
      counters.found(length: nil)
      if options.edits != .both {
        leaveOut(original.identity, "its edit is rendered as \(rendition.name.path.name)")
        return [rendition]
      }
      counters.found(length: size)
      return [original, rendition]
    }
    counters.found(length: size)
    return [original]
  }

  private func leaveOut(_ path: BytePath, _ reason: String) {
    counters.leftOut()
    report.leftOut(path, reason: reason)
  }
}

extension PushOptions {
  /// The name of a single source at the destination; nil keeps its own name.
  var nameOfOne: BytePath? { destination.isFolder ? name : BytePath(destination.endpoint.lastComponent) }

  /// Says where the folder of a file arrives, if the destination's name replaces that of the folder; nil: it does not.
  func renaming(of event: TreeEvent) -> String? {
    guard case .file(let item) = event, layout == nil, !destination.isFolder, let source = sources.first,
      !keepsItsContents(source), item.relative.components.count > 1
    else { return nil }
    let place = destination.endpoint
    return
      "\(shown(source)) arrives as \(place)/…; with a slash at the end of the destination it would arrive as "
      + "\(place)/\(shown(source.name))/…"
  }

  /// Whether the contents of a folder are sent, and not the folder itself.
  private func keepsItsContents(_ source: BytePath) -> Bool {
    source.hasTrailingSlash || source.name == "." || source.name == ".."
  }

  /// Replaces a single source's name by `--name`, or by the last part of a URL that does not end in a slash.
  func arrival(of relative: BytePath) -> BytePath {
    guard let name = nameOfOne else { return relative }
    let source = sources[0]
    if keepsItsContents(source) { return name.appending(relative) }
    return relative.components.dropFirst().reduce(name) { $0.appending($1) }
  }
}
