import BlobUpload
import Blobs

// The list that `--dry-run` shows.
extension PushWalk {
  /// Lists what would be sent to each destination.
  func list(to destinations: [DestinationOutput]) async {
    var listings = destinations.map(Listing.init)
    while let found = await next() {
      for found in found {
        switch found.place {
        case .standardInput, .url: counters.found(length: nil)
        case .file, .rendition: break
        }
        for index in listings.indices { await listings[index].add(found.at(index)) }
      }
    }
  }

  /// The files that would be sent to one destination.
  private struct Listing {
    private let options: PushOptions
    private let report: any PushReport
    private let counters: PushCounters
    /// If files may have the same destination path, all paths are kept in memory.
    private var owners: [BytePath: BytePath] = [:]
    private let dropsFolders: Bool

    init(_ destination: DestinationOutput) {
      (options, report, counters) = (destination.options, destination.report, destination.counters)
      dropsFolders = options.dropsFolders
    }

    mutating func add(_ found: FoundSource) async {
      var what = "\(shown(found.identity))"
      var length: Int64?
      switch found.place {
      case .file(let stamp):
        what = Quantity.text(bytes: stamp.size)
        length = stamp.size
      case .standardInput: what = "standard input"
      case .rendition(let rendition): what = "rendered from \(shown(rendition.original.name))"
      case .url: break
      }
      var numbered = NumberedName(options.sealedName(found.name.template))
      var name: BytePath { dropsFolders ? numbered.path.name : numbered.path }
      if options.namesMayMeet {
        while options.onConflict == .rename, await clash(of: found, as: name) != nil, numbered.count() {}
        if let clash = await clash(of: found, as: name) {
          if options.onConflict == .skip {
            counters.skipped(length: length)
            report.leftOut(found.identity, reason: "\(clash.other) in this push has its name")
            return
          }
          // A file that is not sent does not count in the total.
          counters.withdrawn(length: length)
          counters.notFound()
          report.failed(
            PushedFile(path: found.identity, relative: numbered.path, length: length), clash.message, clash.error(),
            advice: clash.advice)
          return
        }
        owners[name] = found.identity
      }
      report.chosen(numbered.path, what, length: length)
    }

    private func clash(of found: FoundSource, as name: BytePath) async -> NameClash? {
      guard let other = owners[name] else { return nil }
      return await NameClash(
        of: found.identity, with: other, dropsFolders: dropsFolders, replaces: options.overwrites)
    }
  }
}
