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
    if push.isDryRun {
      await PushWalk(push, output.report, output.counters, isWatch: true).list(to: output.destinations)
      return output.end(push.all.map { _ in nil }, isDryRun: true)
    }
    let ends = await interruptible { await watch(output) }
    return output.end(ends.map(\.error), of: ends.map(\.left))
  }

  /// Watches for each destination by itself, so that one that is away for days holds up no other one. Returns for each the
  /// error that ended it, and what is left.
  private func watch(_ output: PushOutput) async -> [(error: UploadError?, left: WatchEnd)] {
    do throws(UploadError) {
      let journal = try await openJournal(options.push.journal, output.report.notice)
      let arrived = options.command.map { command in
        ArrivedFiles(command, destinations: output.destinations.count, output: output.report.programOutput) {
          output.report.notice($0)
        }
      }
      let ends = await withTaskGroup(of: (index: Int, end: (UploadError, WatchEnd)).self) { group in
        for (index, destination) in output.destinations.enumerated() {
          let watch = DestinationWatch(destination, index, options, journal, arrived)
          group.addTask { (index, await watch.run()) }
        }
        var ends: [(error: UploadError?, left: WatchEnd)] = output.destinations.map { _ in (nil, .unlisted) }
        for await ended in group { ends[ended.index] = ended.end }
        return ends
      }
      await arrived?.finish()
      await journal.close()
      return ends
    } catch {
      output.report.tell(error)
      return output.destinations.map { _ in (error, .unlisted) }
    }
  }
}
