import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Finds the files and restores them, several at once.
struct UnsealRun: Sendable {
  let files: any SealedFiles
  /// The only file; nil: all of the folder.
  let only: BytePath?
  let restore: FileRestore
  let jobs: Int
  let report: UnsealReport
  private static let longestPath = 4096

  /// Returns the error that ended the run early; nil: every file was tried.
  func run() async -> UploadError? {
    let channel = BatchChannel<BytePath>(ahead: 1)
    let threads = BlockingPool("fullbore-unseal", threads: jobs)
    return await withTaskGroup(of: UploadError?.self) { group in
      group.addTask {
        defer { channel.finish() }
        do throws(UploadError) { try await walk(channel) } catch { return error }
        report.listed()
        return nil
      }
      for _ in 0..<jobs {
        group.addTask {
          while let path = await channel.next() {
            if let error = await restore(path, on: threads) { return error }
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
    // What an earlier run has left in the folder that is unsealed now.
    return path == RestoreState.name ? nil : path
  }

  /// Returns the error after which no other file would succeed.
  private func restore(_ path: BytePath, on threads: BlockingPool) async -> UploadError? {
    do throws(UploadError) {
      let source = try await files.source(path)
      let result = await threads.runUntilCancelled { cancel in
        Result { () throws(BlobError) in try restore.restore(path, from: source, cancel) }
      }
      switch result {
      case nil: return UploadError(.giveUp, .cancelled, "interrupted")
      case .success(let outcome): report.ended(path, outcome)
      case .failure(let error):
        if error.code == .cancelled { return UploadError(.giveUp, .cancelled, "interrupted") }
        report.failed(path, advised(error))
        return Self.fatal(error)
      }
      return nil
    } catch {
      if error.endsRun { return error }
      report.failed(path, error.message)
      return nil
    }
  }

  private func advised(_ error: BlobError) -> String {
    if only != nil, error.cause is NoAgeFile {
      return "\(error.message). If it is a folder, end it with a slash"
    }
    return error.message
  }

  private static func fatal(_ error: BlobError) -> UploadError? {
    if FileRestore.isFull(error.errno) {
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
