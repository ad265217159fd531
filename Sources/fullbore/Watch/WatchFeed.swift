import BlobUpload
import Blobs
import Platform
import Synchronization

/// The files of a watch in batches without an end: first the existing files, then files that have come to rest.
///
/// It works only during calls of `next`; the kernel queues events in between. If the queue overflowed, or events may
/// have been missed for another reason, everything is walked again; the journal knows which files are done.
actor WatchFeed {
  private nonisolated let executor = BlockingExecutor("fullbore-watch")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  nonisolated let inbox = WatchInbox()
  private nonisolated let kernel: FolderEvents
  private let folders: WatchedFolders
  private let options: WatchOptions
  private let report: any PushReport
  private let counters: PushCounters
  private var settling: Settling
  private var links: WatchedLinks
  private var notices = GivenNotices()
  private var roots: WatchedRoots
  private var walks: WatchWalks

  /// The notices that are not given again.
  private struct GivenNotices {
    /// Files for which it was reported that their edit is not rendered.
    var edits = RememberedFiles()
    /// Files for which it was reported that their names are those of unfinished files.
    var unfinished = RememberedFiles()
    /// It was reported that not every folder can be watched.
    var limit = false
  }

  init(
    _ options: WatchOptions, _ report: any PushReport, _ counters: PushCounters, links: WatchedLinks = WatchedLinks(),
    walkInterval: Duration = .seconds(60)
  ) throws(UploadError) {
    self.links = links
    walks = WatchWalks(interval: options.rescan ?? walkInterval)
    kernel = try FolderEvents()
    folders = WatchedFolders(kernel, roots: options.push.sources.map { $0.absolute() })
    roots = WatchedRoots(options.push.sources)
    settling = Settling(rest: options.settle, waitsOnceClosed: options.waitsOnceClosed)
    self.options = options
    self.report = report
    self.counters = counters
  }

  /// Wakes `next`, because there may be something new. Thread-safe.
  nonisolated func wake() { kernel.ring() }

  /// Call this after a run that ended early: its files are offered again, and counted as found again. The observer has heard
  /// nothing of files that the run took and did not begin.
  func restart() {
    for file in inbox.endAll() { counters.withdrawn(length: file.length) }
    walks.repeatAll()
  }

  /// Whether all files that existed at the start have been returned. True only once.
  func takeListed() -> Bool { walks.takeListed() }

  /// Waits for the next files, possibly none once all are listed, or if deleted ones are sought; nil after `wake` if the task
  /// is cancelled.
  func next() -> [TreeItem]? {
    while !Task.isCancelled {
      for (file, wait) in inbox.takeAgain() { settle(file.path, as: file.relative, after: wait) }
      kernel.read(hear)
      checkRoots()
      for link in links.takeChanged() where !isInTheMaking(link.path) {
        settle(link.path, as: link.relative, after: settling.rest)
      }
      let rested = takeRested()
      if !rested.isEmpty || inbox.seeksDeleted { return rested }
      let hadListed = walks.hasListed
      if let found = walkOn() {
        if !found.isEmpty || walks.hasListed != hadListed { return found }
      } else {
        kernel.wait(atMost: timeToWait)
      }
    }
    return nil
  }

  private var timeToWait: Duration {
    inbox.settling.store(settling.count, ordering: .relaxed)
    let dates = [settling.next, links.next, walks.due, roots.due].compactMap { $0 }
    return max(.zero, ContinuousClock.now.duration(to: dates.min()!))
  }
}

// Kernel events
extension WatchFeed {
  private func hear(_ notice: FolderEvent) {
    if notice.kind == .lost {
      settling.forgetNotices()
      return walkAgain("the system's queue of notices was full")
    }
    if notice.kind == .ended { return folders.forget(notice.watch) }
    guard let folder = folders.place(of: notice.watch) else { return }
    if notice.kind == .moved { return roots.noteMove(of: folder.path) }
    if notice.name.isEmpty { return }
    let path = folder.path.appending(notice.name)
    let relative = folder.relative.appending(notice.name)
    if notice.kind == .movedAway {
      // The contents of a folder that is moved in or out have other paths from now on.
      return notice.isOfFolder ? folders.remove(path) : settling.drop(path)
    }
    if options.push.tree.passesOver(relative, notice.name, isFolder: notice.isOfFolder) { return }
    if notice.isOfFolder {
      if !folders.contains(path) { come(WatchedFolders.Place(path: path, relative: relative)) }
    } else if options.push.tree.filter.includes(relative, notice.name), !isInTheMaking(path),
      options.push.tree.journal?.contains(notice.name, in: folder.path) != true
    {
      // A tracked file is checked when it is due; handling an event for each write would be too slow.
      switch notice.kind {
      case .written where settling.noteWrite(to: path): return
      case .closed: settle(path, as: relative, .closed, after: settling.restOnceClosed)
      case .written: settle(path, as: relative, .written, after: settling.rest)
      default: settle(path, as: relative, after: settling.rest)
      }
    }
  }

  /// Whether another program is writing the file and will rename it when complete; it is sent under that name.
  private func isInTheMaking(_ path: BytePath) -> Bool {
    guard UnfinishedName.matches(path.name) else { return false }
    if notices.unfinished.insert(path, nil) {
      report.leftOut(path, reason: UnfinishedName.reason)
    }
    return true
  }

  private func come(_ folder: WatchedFolders.Place) {
    if !walks.add(folder) { walkAgain("very many folders are new") }
  }

  private func settle(
    _ path: BytePath, as relative: BytePath, _ notices: Settling.Notices = .none, after wait: Duration
  ) {
    links.note(path, as: relative)
    if links.isIncomplete { noteRefused() }
    var status = stat()
    guard path.status(&status) == 0 else { return roots.noteAbsence(of: path) }
    // The object is a folder or a pipe.
    guard status.st_mode & S_IFMT == S_IFREG else { return }
    if !settling.note(path, as: relative, FileStamp(status, at: path), notices, after: wait, at: .now) {
      walkAgain("very many files are being written", after: settling.rest)
    }
  }

  private func walkAgain(_ reason: String, after wait: Duration = .zero) {
    if options.push.output.isVerbose && walks.due == nil { report.notice("\(reason): looking at everything again") }
    walks.replaceAll(after: wait)
  }

  /// Detects sources that were removed, returned or replaced.
  private func checkRoots() {
    for root in roots.takeChanged() {
      folders.remove(root.path)
      if root.isThere {
        report.notice("\(root.path) is there")
        walks.repeatAll()
      } else {
        report.notice("\(root.path) is gone: waiting until it is there again")
      }
    }
  }
}

// Returned files
extension WatchFeed {
  private func takeRested() -> [TreeItem] {
    var items: [TreeItem] = []
    for (path, file) in settling.due(at: .now, options.push.tree) where items.count < PushWalk.batch {
      var status = stat()
      let isThere = path.status(&status) == 0
      guard isThere, status.st_mode & S_IFMT == S_IFREG else {
        if !isThere {
          roots.noteAbsence(of: path)
          inbox.seekDeleted()
        }
        settling.drop(path)
        continue
      }
      if inbox.isUnderWay(path) {
        settling.postpone(path, at: .now)
      } else if settling.look(path, FileStamp(status, at: path), FileUsers(of: path, for: .writing), at: .now) {
        let found = TreeItem(path: path, relative: file.relative, stamp: FileStamp(status, at: path))
        if let item = hand(out: found) { items.append(item) }
      }
    }
    return items
  }

  /// The next files of the current walk; nil if there is no walk.
  private func walkOn() -> [TreeItem]? {
    if walks.current == nil { beginWalk() }
    guard let walk = walks.current else { return nil }
    let events = walk.tree.next(max: PushWalk.batch)
    if events.isEmpty {
      if walk.isWhole {
        inbox.seekDeleted()
        if let interval = options.rescan { walks.repeatAll(after: interval) }
      }
      if walks.end() {
        counters.isListed.store(true, ordering: .relaxed)
        report.notice("watching \(Quantity.plural(folders.count, "folder"))")
      }
      noteRefused()
    }
    return events.compactMap { take($0, tells: walk.tells) }
  }

  private func beginWalk() {
    let enter: @Sendable (BytePath, BytePath) -> Void = { [folders] in folders.add($0, $1) }
    if walks.takeDue() {
      links.beginWalk()
      walks.begin(FileTree(roots.there, options.push.tree, entering: enter), isWhole: true)
    } else if let folder = walks.takeNewFolder() {
      walks.begin(
        FileTree(in: folder.path, as: folder.relative, options.push.tree, entering: enter), isWhole: false)
    }
  }

  private func noteRefused() {
    let (count, reason) = folders.takeRefused()
    if count == 0 && !links.isIncomplete { return }
    if !notices.limit, count > 0 {
      notices.limit = true
      report.notice(
        "\(Quantity.plural(count, "folder")) cannot be watched: \(reason). All is looked at every \(Quantity.text(walks.interval))"
      )
    }
    walks.repeatAll(after: walks.interval)
  }

  private func take(_ event: TreeEvent, tells: Bool) -> TreeItem? {
    switch event {
    case .file(let item):
      if !item.isOnlyName { links.note(item.path, as: item.relative) }
      if settling.contains(item.path) || isInTheMaking(item.path) { return nil }
      // A file in progress may be an earlier one, from before its folder was moved, so it is checked again.
      if !inbox.isUnderWay(item.path), settling.isAtRest(item) { return hand(out: item) }
      settle(item.path, as: item.relative, after: settling.rest)
    case .skipped(let path, let reason) where tells:
      counters.leftOut()
      report.leftOut(path, reason: reason)
    case .failed(let path, let message):
      roots.noteAbsence(of: path)
      // The target of a link may appear later.
      if let place = folders.place(of: path) { links.note(path, as: place.relative) }
      if tells {
        counters.notFound()
        report.failed(path, message)
      }
    case .skipped, .noticed: break
    }
    return nil
  }

  private func hand(out item: TreeItem) -> TreeItem? {
    if inbox.isRefused(item.path, item.stamp) { return nil }
    switch options.push.placing(of: item) {
    case .leftOut(let reason):
      if !walks.hasListed { counters.leftOut() }
      report.leftOut(item.path, reason: reason)
      return nil
    case .at(let arrival):
      if options.push.hasEdit(item), notices.edits.insert(item.path, nil) {
        report.notice("\(item.path): its edit is not rendered, the original is sent: a watch renders none")
      }
      inbox.begin(
        WatchInbox.Handed(
          path: item.path, relative: item.relative, isFirst: !walks.hasListed, length: item.stamp.size))
      counters.found(length: item.stamp.size)
      return TreeItem(path: item.path, relative: arrival, stamp: item.stamp)
    }
  }
}
