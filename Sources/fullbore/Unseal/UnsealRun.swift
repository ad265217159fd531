import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs
import Platform
import Synchronization

/// Finds the files and restores them, several at once.
final class UnsealRun: Sendable {
  let files: any SealedFiles
  /// The only file; nil: all of the folder.
  let only: BytePath?
  let restore: FileRestore
  let names: RestoredNames
  let jobs: Int
  /// How often a file is begun again after its download was cut, where the server sends no rest of it.
  let retries: Int
  let report: UnsealReport
  /// The files that are restored now.
  private let active = Mutex<Set<BytePath>>([])
  /// The paths at which they are restored.
  private let targets = Monitor<Set<BytePath>>([])
  /// The number of calls that read and write.
  private let working = Monitor(0)
  /// Whether every folder was listed.
  private let areListed = Atomic(true)
  /// The names that this run has restored, so that no file replaces another one of this run.
  private let claimed = ClaimedNames()
  private static let longestPath = 4096
  private static let mostFolders = 100_000
  /// A folder with more files is listed a second time, so that its indexes are read before its files.
  private static let mostHeld = 10_000

  init(
    _ files: any SealedFiles, only: BytePath?, _ restore: FileRestore, _ names: RestoredNames, jobs: Int,
    retries: Int, _ report: UnsealReport
  ) {
    (self.files, self.only, self.restore, self.names) = (files, only, restore, names)
    (self.jobs, self.retries, self.report) = (jobs, retries, report)
  }

  /// Returns the error that ended the run early; nil: every file was tried.
  func run() async -> UploadError? {
    let channel = BatchChannel<BytePath>(ahead: 1)
    // One thread reads indexes.
    let threads = BlockingPool("fullbore-unseal", threads: jobs + 1)
    let ended = await withTaskGroup(of: UploadError?.self) { group in
      group.addTask {
        defer { channel.finish() }
        do throws(UploadError) { try await self.walk(channel, on: threads) } catch { return error }
        self.report.listed()
        return nil
      }
      for _ in 0..<jobs {
        group.addTask {
          while let path = await channel.next() {
            if let error = await self.restore(path, on: threads) { return error }
          }
          return nil
        }
      }
      var ended: UploadError?
      while let error = await group.next() {
        guard let error, ended == nil else { continue }
        ended = error
        group.cancelAll()
        // Tasks that wait for the channel do not notice that they are cancelled.
        _ = channel.drop()
      }
      return ended
    }
    if ended == nil, only == nil, areListed.load(ordering: .relaxed) { return await tellMissing(on: threads) }
    if ended != nil {
      // The written bytes are synced, so that the next run can continue. A read of a file system that hangs may never
      // return.
      await BlockingPool.shared.run { [working] in
        _ = working.wait(atMost: .seconds(10)) { $0 == 0 ? true : nil }
      }
    }
    return ended
  }

  private func walk(_ channel: BatchChannel<BytePath>, on threads: BlockingPool) async throws(UploadError) {
    if let only {
      if SealedNames.isOpaque(only) { try await readIndexes(try await look(into: "").indexes, in: "", on: threads) }
      report.found(1)
      _ = await channel.send([only])
      return
    }
    // Folders that wait to be listed.
    var folders: [BytePath] = [""]
    while let folder = folders.popLast() {
      do throws(UploadError) {
        let found = try await look(into: folder)
        try await readIndexes(found.indexes, in: folder, on: threads)
        folders += found.below.reversed()
        if folders.count > Self.mostFolders {
          throw UploadError(.giveUp, .destination, "there are more than \(Self.mostFolders) folders beside each other")
        }
        if found.areAll { try await hand(on: found.files, channel) } else { try await handAll(of: folder, channel) }
      } catch {
        if error.side == .cancelled || error.side == .destination || folder.isEmpty { throw error }
        areListed.store(false, ordering: .relaxed)
        report.failed(folder, error.message)
      }
    }
  }

  /// What a folder has.
  private struct Found {
    var below: [BytePath] = []
    var indexes: [BytePath] = []
    var files: [BytePath] = []
    /// Whether `files` has all of them.
    var areAll = true
  }

  private func look(into folder: BytePath) async throws(UploadError) -> Found {
    var found = Found()
    try await files.list(folder) { (entries: [ListedEntry]) async throws(UploadError) in
      if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
      for entry in entries {
        let path = folder.isEmpty ? entry.name : folder.appending(entry.name)
        if !entry.name.isOneName || path.bytes.count > Self.longestPath {
          fail(path, "no file here can have this name, so it is left")
        } else if isOwn(path) {
          if entry.name.isTemporaryUpload { report.notice("\(path): passed over: a push has left it behind") }
        } else if entry.isFolder {
          found.below.append(path)
        } else if SealedNames.isIndex(entry.name) {
          found.indexes.append(path)
        } else if found.files.count < Self.mostHeld {
          found.files.append(path)
        } else {
          found.areAll = false
        }
        if max(found.below.count, found.indexes.count) > Self.mostFolders {
          throw UploadError(
            .giveUp, .destination, "\(path): there are more than \(Self.mostFolders) folders or indexes beside it")
        }
      }
    }
    return found
  }

  /// Lists a folder again that has more files than are held in memory.
  private func handAll(of folder: BytePath, _ channel: BatchChannel<BytePath>) async throws(UploadError) {
    try await files.list(folder) { (entries: [ListedEntry]) async throws(UploadError) in
      let paths = entries.filter { !$0.isFolder && $0.name.isOneName && !SealedNames.isIndex($0.name) }
        .map { folder.isEmpty ? $0.name : folder.appending($0.name) }
        .filter { $0.bytes.count <= Self.longestPath && !isOwn($0) }
      try await hand(on: paths, channel)
    }
  }

  private func hand(on paths: [BytePath], _ channel: BatchChannel<BytePath>) async throws(UploadError) {
    report.found(paths.count)
    var rest = paths[...]
    while !rest.isEmpty {
      let isTaken = await channel.send(Array(rest.prefix(128)))
      rest = rest.dropFirst(128)
      if Task.isCancelled || !isTaken { throw UploadError(.giveUp, .cancelled, "interrupted") }
    }
  }

  /// One that cannot be read is named: what it says would be missed.
  private func readIndexes(
    _ indexes: [BytePath], in folder: BytePath, on threads: BlockingPool
  ) async throws(UploadError) {
    for path in indexes {
      let source = WatchedSource(try await files.source(path))
      let result = await threads.runUntilCancelled { [names, restore] cancel in
        Result { () throws(BlobError) in try names.add(source, in: folder, restore.identities, cancel) }
      }
      guard let result else { throw UploadError(.giveUp, .cancelled, "interrupted") }
      guard case .failure(let error) = result else { continue }
      // The files of a folder wait for names that a server has and cannot give now.
      if error.code == .cancelled || source.hasFailed {
        var ended = UploadError(error)
        if Self.fatal(error) != nil { ended.side = .destination }
        throw ended
      }
      fail(path, "\(error.message). It tells the names of files, which are restored without them")
    }
  }

  private func fail(_ path: BytePath, _ message: String) {
    report.found(1)
    report.failed(path, message)
  }

  /// Names the files that an index names and that are not there.
  private func tellMissing(on threads: BlockingPool) async -> UploadError? {
    var last: BytePath = ""
    while !Task.isCancelled {
      let result = await threads.run { [names, last] in
        Result { () throws(BlobError) in try names.missing(after: last) }
      }
      guard case .success(let missing) = result, let end = missing.last else {
        if case .failure(let error) = result { return UploadError(.giveUp, .file, error.message, cause: error) }
        return nil
      }
      for name in missing {
        fail(FileRestore.path(of: name.plain), "an index names it, and it is not there as \(name.sealed)")
      }
      last = end.sealed
    }
    return UploadError(.giveUp, .cancelled, "interrupted")
  }

  /// An earlier run may have left its folder, and a Fullbore server has its own folder in the one that it serves.
  private func isOwn(_ path: BytePath) -> Bool {
    path == RestoreState.name || path == ServedPath.storeName || path.name.isTemporaryUpload
  }

  /// Returns the error after which no other file would succeed.
  private func restore(_ path: BytePath, on threads: BlockingPool) async -> UploadError? {
    // A server that has failed meanwhile, or is hostile, may list a file twice. Two writers would share one temporary file.
    guard active.withLock({ $0.insert(path).inserted }) else {
      report.found(-1)
      return nil
    }
    defer { _ = active.withLock { $0.remove(path) } }
    do throws(UploadError) {
      if restore.copiesUnsealed, path == only, await isFolder(path) {
        report.failed(path, "it is a folder: end it with a slash")
        return nil
      }
      var result = try await attempt(path, on: threads)
      for _ in 0..<retries {
        // The error of a cut download of a server that names no version of the file, or gives no ranges.
        guard case .failure(let error) = result, error.code == .invalidated else { break }
        result = try await attempt(path, on: threads)
      }
      switch result {
      case nil: return UploadError(.giveUp, .cancelled, "interrupted")
      case .success(let (outcome, name)):
        if name == nil, SealedNames.isOpaque(path.name) {
          report.failed(path, "no index there names it: it is restored as \(FileRestore.path(of: path))")
        } else {
          report.ended(path, named: name?.plain, outcome)
        }
      case .failure(let error):
        if error.code == .cancelled { return UploadError(.giveUp, .cancelled, "interrupted") }
        report.failed(path, error.message, advice: advice(for: error))
        return Self.fatal(error)
      }
      return nil
    } catch {
      if error.endsRun { return error }
      report.failed(path, error.message, advice: error.readingAdvice)
      return nil
    }
  }

  /// nil: the run was cancelled.
  private func attempt(
    _ path: BytePath, on threads: BlockingPool
  ) async throws(UploadError) -> Result<(FileRestore.Outcome, RestoredNames.Name?), BlobError>? {
    let (source, again) = (try await files.source(path), try await files.source(path))
    return await threads.runUntilCancelled { cancel in
      self.working.update { $0 += 1 }
      defer { self.working.update { $0 -= 1 } }
      return Result { () throws(BlobError) in try self.restore(path, from: source, again: again, cancel) }
    }
  }

  /// Restores a file under the name that an index has for it. This call blocks.
  private func restore(
    _ path: BytePath, from source: any BlobSource, again: any BlobSource, _ cancel: Cancellation
  ) throws(BlobError) -> (FileRestore.Outcome, RestoredNames.Name?) {
    let name = SealedNames.isOpaque(path.name) ? try names.name(of: path) : nil
    // Two files may have one name, as after pushes with and without sealed names. The second one is compared.
    let restored = FileRestore.path(of: name?.plain ?? path)
    while targets.wait(atMost: .seconds(1), until: { $0.insert(restored).inserted ? true : nil }) == nil {
      try cancel.check("restore \(restored)")
    }
    defer { targets.update { _ = $0.remove(restored) } }
    if restore.overwrites, !claimed.take(restored, for: path) {
      throw BlobError(
        .io, "another file is restored as \(restored) by this run: unseal one of them into another folder")
    }
    return (
      try restore.restore(name?.plain ?? path, from: source, again: again, modified: name?.modified, cancel), name
    )
  }
}
