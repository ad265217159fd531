import BlobUpload
import Blobs
import Platform

struct WatchCommand: Command {
  static let declaration = CommandDeclaration(
    name: "watch", synopsis: "watch FOLDER... DESTINATION",
    summary: "push what is there, then keep pushing what arrives",
    options: WatchOptions.declared,
    examples: [
      .init(
        "watch DCIM/ http://nas:8080/2026/ --layout '{year}/{month}/{name}'",
        "what is there, and what arrives from now on")
    ], notes: WatchOptions.notes, takesPlaces: true)

  let options: WatchOptions

  init(_ arguments: Arguments) throws(UsageError) { options = try WatchOptions(arguments) }

  var outputIsResult: Bool { options.push.output.isJSON || options.push.isDryRun }

  func run() async -> ExitStatus {
    // SIGIO arrives when another process waits to write a file while this one holds a lease to check for writers.
    signal(SIGIO, SIG_IGN)
    let push = options.push
    let output = PushOutput(push)
    var ended: [UploadError?] = push.all.map { _ in nil }
    if push.isDryRun {
      await PushWalk(push, output.report, output.counters, isWatch: true).list(to: output.destinations)
    } else {
      ended = await interruptible { await watch(output) }
    }
    return output.end(ended, isDryRun: push.isDryRun)
  }

  /// Watches for each destination by itself, so that one that is away for days holds up no other one. Returns the errors
  /// that ended them.
  private func watch(_ output: PushOutput) async -> [UploadError?] {
    do throws(UploadError) {
      let journal = try await openJournal(options.push.journal, output.report.notice)
      let arrived = options.command.map { command in
        ArrivedFiles(command, destinations: output.destinations.count) { output.report.notice($0) }
      }
      let ended = await withTaskGroup(of: (index: Int, error: UploadError).self) { group in
        for (index, destination) in output.destinations.enumerated() {
          let watch = DestinationWatch(destination, index, options, journal, arrived)
          group.addTask { (index, await watch.run()) }
        }
        var ended: [UploadError?] = output.destinations.map { _ in nil }
        for await end in group { ended[end.index] = end.error }
        return ended
      }
      await arrived?.finish()
      await journal.close()
      return ended
    } catch {
      output.report.tell(error)
      return output.destinations.map { _ in error }
    }
  }
}
