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
  let jobs: Int
  let report: UnsealReport
  /// The files that are restored now.
  private let active = Mutex<Set<BytePath>>([])
  /// The number of calls that read and write.
  private let working = Monitor(0)
  private static let longestPath = 4096

  init(_ files: any SealedFiles, only: BytePath?, _ restore: FileRestore, jobs: Int, _ report: UnsealReport) {
    (self.files, self.only, self.restore) = (files, only, restore)
    (self.jobs, self.report) = (jobs, report)
  }

  /// Returns the error that ended the run early; nil: every file was tried.
  func run() async -> UploadError? {
    let channel = BatchChannel<BytePath>(ahead: 1)
    let threads = BlockingPool("fullbore-unseal", threads: jobs)
    let ended = await withTaskGroup(of: UploadError?.self) { group in
      group.addTask {
        defer { channel.finish() }
        do throws(UploadError) { try await self.walk(channel) } catch { return error }
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
    if ended != nil {
      // What was written is synced, so that it is kept. A read of a file system that hangs may never return.
      await BlockingPool.shared.run { [working] in
        _ = working.wait(atMost: .seconds(10)) { $0 == 0 ? true : nil }
      }
    }
    return ended
  }

  private func walk(_ channel: BatchChannel<BytePath>) async throws(UploadError) {
    if let only {
      report.found(1)
      _ = await channel.send([only])
      return
    }
    var folders: [BytePath] = [""]
    while let folder = folders.popLast() {
      var below: [BytePath] = []
      do throws(UploadError) {
        try await files.list(folder) { (entries: [ListedEntry]) async throws(UploadError) in
          var batch: [BytePath] = []
          for entry in entries {
            guard let path = path(of: entry, in: folder) else { continue }
            if entry.isFolder { below.append(path) } else { batch.append(path) }
          }
          report.found(batch.count)
          let isTaken = await channel.send(batch)
          if Task.isCancelled || !isTaken { throw UploadError(.giveUp, .cancelled, "interrupted") }
        }
      } catch {
        if error.side == .cancelled || error.side == .destination || folder.isEmpty { throw error }
        report.failed(folder, error.message)
      }
      folders += below.reversed()
    }
  }

  /// nil: no file here can have that name, which is reported.
  private func path(of entry: ListedEntry, in folder: BytePath) -> BytePath? {
    let path = folder.isEmpty ? entry.name : folder.appending(entry.name)
    if !entry.name.isOneName || path.bytes.count > Self.longestPath {
      report.found(1)
      report.failed(path, "no file here can have this name, so it is left")
      return nil
    }
    // An earlier run may have left its folder, and a Fullbore server has its own folder in the one that it serves.
    return path == RestoreState.name || path == ServedPath.storeName ? nil : path
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
      let source = try await files.source(path)
      let result = await threads.runUntilCancelled { cancel in
        self.working.update { $0 += 1 }
        defer { self.working.update { $0 -= 1 } }
        return Result { () throws(BlobError) in try self.restore.restore(path, from: source, cancel) }
      }
      switch result {
      case nil: return UploadError(.giveUp, .cancelled, "interrupted")
      case .success(let outcome): report.ended(path, outcome)
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

  private func advice(for error: BlobError) -> String? {
    // A folder of this machine is known as one.
    if error.cause is NoAgeFile {
      return only == nil || files is LocalFiles ? nil : "If it is a folder, end it with a slash"
    }
    if error.code == .permission, error.errno == 0 {
      return "-i FILE names another private key, and may be repeated; --seal-passphrase-file FILE has a passphrase"
    }
    return error.readingAdvice
  }

  private static func fatal(_ error: BlobError) -> UploadError? {
    if PartialFile.isFull(error.errno) {
      return UploadError(.giveUp, .file, "stopped: nothing else can be written there either", cause: error)
    }
    guard let cause = error.cause as? TransportError,
      [.resolve, .connect, .untrusted, .tls, .proxy].contains(cause.code)
    else { return nil }
    return UploadError(.giveUp, .destination, "stopped: the source cannot be reached", cause: error)
  }
}

extension UploadError {
  fileprivate var endsRun: Bool { side == .destination || side == .cancelled }
}
