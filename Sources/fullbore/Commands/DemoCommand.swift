import Blobs
import Platform

/// Shows on one machine what the program does, and holds every byte against its source.
struct DemoCommand: Command {
  static let declaration = CommandDeclaration(
    name: "demo", synopsis: "demo [FOLDER]",
    summary: "push FOLDER (or a made gallery) to this machine, verify every byte, report",
    options: [
      .value("in", "FOLDER", "where to receive; $TMPDIR, /var/tmp or /tmp when not given"),
      .value("video-size", "SIZE", "of the film in the made gallery; 1G when not given"),
    ],
    notes: "Everything it makes is in one new folder, which is removed at the end, also after Ctrl-C.")

  /// nil: a gallery is made.
  let folder: BytePath?
  let place: BytePath?
  let videoSize: Int64

  init(_ arguments: Arguments) throws(UsageError) {
    if arguments.operands.count > 1 { throw UsageError("one folder at most is wanted") }
    folder = arguments.operands.first?.absolute()
    place = arguments.value("in")?.absolute()
    videoSize =
      try arguments.parsed("video-size", wanted: "a size from 1M to 1T") { text in
        Quantity.size(text).flatMap { 1 << 20...1 << 40 ~= $0 ? $0 : nil }
      } ?? 1 << 30
  }

  var outputIsResult: Bool { false }

  func run() async -> ExitStatus {
    await BlockingPool.shared.run { self.perform() }
  }

  private func perform() -> ExitStatus {
    do throws(DemoError) {
      let given = try folder.map { path throws(DemoError) in try Content(of: path) }
      let needed = given?.bytes ?? videoSize + 2 * DemoGallery.expectedImageBytes
      let stage = try DemoStage(in: try placeWithRoom(for: needed + (64 << 20)))
      Signals.onInterrupt { _ in stage.interrupt() }
      defer {
        stage.clear()
        Console.output.write("Removed \(shown(stage.folder)).\n")
      }
      return try show(on: stage, given)
    } catch {
      Console.output.flush()
      Console.error.write("fullbore demo: \(shown(error.message))\n")
      return error.isInterruption ? .interrupted : .failed
    }
  }

  private func show(on stage: DemoStage, _ given: Content?) throws(DemoError) -> ExitStatus {
    let show: DemoShow
    if let folder, let given {
      say("\(shown(folder)): \(Quantity.plural(given.files, "file")), \(Quantity.text(bytes: given.bytes)).")
      show = try DemoShow(stage, gallery: folder, largest: given.largest, isStamped: false)
    } else {
      let path = try stage.makeFolder("gallery")
      let gallery = try DemoGallery(in: path, videoSize: videoSize) { stage.isInterrupted }
      say(
        """
        Made a gallery: \(gallery.images.count) images, \(Quantity.text(bytes: gallery.apparentSize - gallery.videoSize)), \
        and a film of \(Quantity.text(bytes: gallery.videoSize)) that takes \(Quantity.text(bytes: gallery.videoDiskSize)) \
        of disk: it is empty but for a stamp at every MiB.
        """)
      show = try DemoShow(stage, gallery: path, largest: try Content(of: path).largest, isStamped: true)
    }
    let runs = try show.run()
    say("\n\(DemoTable.text(runs))")
    let isWhole = runs.allSatisfy { $0.compared == $0.bytes && $0.temporaryFiles == 0 }
    say(
      isWhole ? "Everything arrived, and every byte was compared." : "Not everything is as it should be: see the table."
    )
    return isWhole ? .ok : .failed
  }

  /// What a folder holds, as far as it would be sent.
  private struct Content {
    var files = 0
    var bytes: Int64 = 0
    var largest: TreeItem

    init(of folder: BytePath) throws(DemoError) {
      var largest: TreeItem?
      let tree = FileTree([BytePath(folder.bytes + [UInt8(ascii: "/")])])
      while true {
        let events = tree.next(max: 64)
        if events.isEmpty { break }
        for event in events {
          switch event {
          case .file(let item):
            files += 1
            bytes += item.stamp.size
            if largest.map({ item.stamp.size > $0.stamp.size }) ?? true { largest = item }
          case .failed(let path, let message): throw DemoError("\(path): \(message)")
          case .skipped: break
          }
        }
      }
      guard let largest else { throw DemoError("\(folder): there is no file to send in it") }
      self.largest = largest
    }
  }

  private func placeWithRoom(for bytes: Int64) throws(DemoError) -> BytePath {
    let places = place.map { [$0] } ?? [environment("TMPDIR"), "/var/tmp", "/tmp"].compactMap { $0?.absolute() }
    var found: [String] = []
    for place in places {
      var space = statvfs()
      if place.withCString({ statvfs($0, &space) }) != 0 || place.withCString({ access($0, W_OK) }) != 0 {
        found.append("\(shown(place)): \(String(cString: strerror(errno)))")
        continue
      }
      let free = Int64(clamping: UInt64(space.f_bavail) * UInt64(space.f_frsize))
      if free >= bytes {
        say("Receiving in \(shown(place)): \(Quantity.text(bytes: bytes)) needed, \(Quantity.text(bytes: free)) free.")
        return place
      }
      found.append("\(shown(place)) has \(Quantity.text(bytes: free))")
    }
    throw DemoError(
      "receiving needs \(Quantity.text(bytes: bytes)) of free space; \(found.joined(separator: ", ")). "
        + "Free some, or give --in FOLDER\(folder == nil ? " or a smaller --video-size" : "")")
  }

  private func say(_ text: String) {
    Console.output.write(text + "\n")
    Console.output.flush()
  }
}
