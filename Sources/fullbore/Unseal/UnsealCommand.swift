import BlobClient
import BlobUpload
import Blobs
import Platform

struct UnsealCommand: Command {
  static let declaration = CommandDeclaration(
    name: "unseal", synopsis: "unseal SOURCE FOLDER",
    summary: "open files that 'push --seal' has sealed, with their folders and times",
    options: UnsealOptions.declared,
    examples: [
      .init("unseal nas:2026/ ~/restored -i key.txt", "all files below that folder; run it again to go on"),
      .init("unseal s3://bucket/2026/ ~/restored -i ~/.ssh/id_ed25519", "from a bucket, with an SSH key"),
    ], notes: UnsealOptions.notes, takesPlaces: true)

  let options: UnsealOptions

  init(_ arguments: Arguments) throws(UsageError) { options = try UnsealOptions(arguments) }

  var outputIsResult: Bool { options.output.isJSON }

  func run() async -> ExitStatus {
    let report = UnsealReport(options.output)
    for notice in options.notices { report.notice(notice) }
    let ended = await interruptible { await unseal(report) }
    if let ended, ended.side != .cancelled { report.ended(ended) }
    if ended == nil, !report.hasFound { report.notice("no file was found there: is the path right?") }
    let exit: ExitStatus =
      switch ended?.side {
      case .cancelled: .interrupted
      case .destination: .unreachable
      case .source, .file, .journal: .failed
      case nil: report.hasFailed || !report.hasFound ? .failed : .ok
      }
    report.finish(exit)
    return exit
  }

  /// Returns the error that ended the run early; nil: every file was tried.
  private func unseal(_ report: UnsealReport) async -> UploadError? {
    var outage: OutageMonitor?
    if case .remote(let destination) = options.source {
      outage = OutageMonitor(destination.endpoint, report, report.counters, onlyTellsFailures: true)
    }
    outage?.start()
    defer { outage?.stop() }
    do throws(UploadError) {
      let (files, only) = try await files(report, outage)
      let (destination, state, names) = try await BlockingPool.shared.run {
        [options] () throws(UploadError) -> (RestoreFolder, RestoreState, RestoredNames) in
        do throws(BlobError) {
          let destination = try RestoreFolder(options.destination)
          return (destination, try RestoreState(in: destination), try RestoredNames())
        } catch {
          throw UploadError(.giveUp, .file, error.message, cause: error)
        }
      }
      let restore = FileRestore(
        destination: destination, state: state, identities: options.identities, overwrites: options.overwrites,
        copiesUnsealed: options.copiesUnsealed, noteRead: report.noteRead)
      let retry = RetryPolicy(retries: options.connection.retries)
      let run = UnsealRun(
        files, only: only, restore, names, jobs: options.jobs, retries: retry.retries, report)
      if let error = await run.run() { return error }
      if !report.hasFailed { await BlockingPool.shared.run { state.remove() } }
      return nil
    } catch {
      return error
    }
  }

  /// The files, and the name of the only one.
  private func files(
    _ report: UnsealReport, _ outage: OutageMonitor?
  ) async throws(UploadError) -> (any SealedFiles, only: BytePath?) {
    switch options.source {
    case .local(let path):
      var status = stat()
      if path.status(&status) == 0, status.st_mode & S_IFMT == S_IFREG {
        let path = path.absolute()
        return (LocalFiles(folder: path.folder), path.name)
      }
      return (LocalFiles(folder: path), nil)
    case .remote(let destination):
      let transport = SocketTransport(try options.connection.transportOptions(connections: 1))
      outage?.discovering()
      let reached = try await Reached(
        destination, options.connection, checksum: nil, telling: outage, over: transport)
      outage?.answered()
      var uploader = Uploader(
        reached.destination, transport: transport, retry: RetryPolicy(retries: options.connection.retries))
      uploader.notice = { report.notice($0) }
      uploader.retrying = outage?.noteRetry
      // A reader that goes on elsewhere in its file has two connections for a moment, and must not wait for the second.
      let reading = SocketTransport(try options.connection.transportOptions(connections: 2 * options.jobs))
      let files = StoredFiles(uploader, reading: reading)
      try await files.begin()
      return (files, destination.isFolder ? nil : BytePath(destination.endpoint.lastComponent))
    }
  }
}
