import BlobUpload
import Blobs
import Platform

/// What the demo shows, scene by scene. Blocks; runs on one thread.
struct DemoShow {
  let stage: DemoStage
  /// What is sent; every path in it arrives below `gallery/`.
  let gallery: BytePath
  /// The file that is killed and resumed, and sent under the limit. Its arrival path in the gallery.
  let largest: TreeItem
  /// The film was made by us and has stamps.
  let isStamped: Bool
  private let temporary: BytePath
  private let received: BytePath
  private let verify: DemoVerify

  init(_ stage: DemoStage, gallery: BytePath, largest: TreeItem, isStamped: Bool) throws(DemoError) {
    self.stage = stage
    self.gallery = gallery
    self.largest = largest
    self.isStamped = isStamped
    temporary = try stage.makeFolder("tmp")
    received = try stage.makeFolder("received")
    verify = DemoVerify { stage.isInterrupted }
  }

  func run() throws(DemoError) -> [DemoRun] {
    let server = try stage.start(["serve", received, "--listen", "127.0.0.1:0", "--quiet"], output: .piped)
    var lines = LineReader(server.output)
    guard let url = lines.next(), url.hasPrefix("http://") else {
      try stage.check()
      throw DemoError("the server did not start: \(server.wait().text)")
    }
    say("\nServing \(shown(received)) at \(url)")
    var runs = [try pushGallery(to: url)]
    // A smaller file goes in one request: after a kill there is nothing to go on with.
    runs.append(largest.stamp.size > Tus().wholeUpTo ? try killAndResume(to: url) : try pushTwice(to: url))
    runs.append(try pushUnderLimit(to: url))
    return runs
  }

  private func pushGallery(to url: String) throws(DemoError) -> DemoRun {
    say("\n── The gallery ──\nfullbore push \(quoted(gallery))/ \(url)gallery/")
    let arguments = pushArguments(gallery.appending("/"), "\(url)gallery/", journal: "gallery")
    var run = try push("gallery", arguments)
    try compareGallery(in: "gallery", &run)
    return run
  }

  /// Where no file is large enough to be killed half-way.
  private func pushTwice(to url: String) throws(DemoError) -> DemoRun {
    say(
      """

      ── Pushed twice ──
      The largest file, \(shown(largest.relative)), has \(Quantity.grouped(largest.stamp.size)) bytes. It goes in one \
      request, so there is nothing to go on with after a kill.
      fullbore push \(quoted(gallery))/ \(url)twice/
      """)
    let arguments = pushArguments(gallery.appending("/"), "\(url)twice/", journal: "twice")
    var run = try push("pushed twice", arguments)
    say("The same command again:")
    let began = ContinuousClock.now
    let again = try stage.start(arguments + ["--json"], environment: ["TMPDIR": temporary], output: .piped)
    var lines = LineReader(again.output)
    var sent: Int64?
    while let line = lines.next() {
      if line.hasPrefix("{\"event\":\"summary\"") { sent = number("bytes_sent", in: line) }
    }
    let end = again.wait()
    try require(end)
    guard sent == 0 else { throw DemoError("the second push sent what was there") }
    say("It sent nothing: everything is there.")
    run.elapsed += began.duration(to: .now)
    run.peakMemory = max(run.peakMemory, end.peakMemory)
    run.written += end.written
    try compareGallery(in: "twice", &run)
    return run
  }

  /// Compares what arrived in `folder` with the gallery, and removes it.
  private func compareGallery(in folder: BytePath, _ run: inout DemoRun) throws(DemoError) {
    let tree = FileTree([BytePath(gallery.bytes + [slash])])
    while true {
      let events = tree.next(max: 64)
      if events.isEmpty { break }
      for case .file(let item) in events {
        run.files += 1
        run.bytes += item.stamp.size
        run.compared += try compare(item, with: received.appending(folder).appending(item.relative))
      }
    }
    say("Compared \(Quantity.grouped(run.compared)) bytes of \(Quantity.plural(run.files, "file")): all equal.")
    removeTree(received.appending(folder))
  }

  private func killAndResume(to url: String) throws(DemoError) -> DemoRun {
    // Slow enough to be caught half-way.
    let rate = max(largest.stamp.size / 4, 512 << 10)
    let limit = rate % (1 << 20) == 0 ? "\(rate >> 20)M" : "\(rate >> 10)K"
    say("\n── Killed half-way ──\nfullbore push --bwlimit \(limit) \(quoted(largest.path)) \(url)resumed/")
    let arguments = pushArguments(largest.path, "\(url)resumed/", journal: "resumed")
    let watch = try FolderWatch(temporary)
    let began = ContinuousClock.now
    let first = try stage.start(
      arguments + ["--json", "--bwlimit", BytePath(limit)], environment: ["TMPDIR": temporary], output: .piped)
    var killedAt: Int64?
    try follow(first) { sent in
      if killedAt == nil && sent >= largest.stamp.size / 2 {
        killedAt = sent
        first.send(SIGKILL)
      }
    }
    let end = first.wait()
    guard let killedAt, end.signal == SIGKILL else {
      try stage.check()
      throw DemoError("the push to be killed ended by itself: \(end.text)")
    }
    say("Killed with SIGKILL when \(Quantity.grouped(killedAt)) bytes had gone out.\nThe same command again:")
    let again = try stage.start(arguments + ["--json"], environment: ["TMPDIR": temporary], output: .piped)
    let resumedFrom = try follow(again) { _ in }
    let last = again.wait()
    try require(last)
    let elapsed = began.duration(to: .now)
    guard let resumedFrom, resumedFrom > 0 else {
      throw DemoError("the second push did not go on where the first was killed")
    }
    say("It went on at byte \(Quantity.grouped(resumedFrom)).")
    var run = DemoRun(title: "killed and resumed", files: 1, bytes: largest.stamp.size, elapsed: elapsed)
    run.peakMemory = max(end.peakMemory, last.peakMemory)
    run.written = end.written + last.written
    run.temporaryFiles = watch.newNames().count
    run.compared = try compareSingle(in: "resumed")
    return run
  }

  private func pushUnderLimit(to url: String) throws(DemoError) -> DemoRun {
    say(
      """

      ── No copy on disk ──
      The same file again, where the kernel ends a process that writes more than 1 MiB into any file (SIGXFSZ):
      (ulimit -f 1024; fullbore push \(quoted(largest.path)) \(url)limited/)
      """)
    let arguments = pushArguments(largest.path, "\(url)limited/", journal: "limited")
    var run = try push("files limited to 1 MiB", arguments, fileLimit: 1 << 20)
    (run.files, run.bytes) = (1, largest.stamp.size)
    run.compared = try compareSingle(in: "limited")
    return run
  }

  private func compareSingle(in folder: BytePath) throws(DemoError) -> Int64 {
    let path = received.appending(folder).appending(largest.path.name)
    let compared = try compare(largest, with: path)
    say("Compared \(Quantity.grouped(compared)) bytes: all equal.")
    removeTree(received.appending(folder))
    return compared
  }

  private func compare(_ item: TreeItem, with path: BytePath) throws(DemoError) -> Int64 {
    if isStamped && item.path == largest.path { _ = try StampedVideo.check(path) }
    switch try verify.compare(item.path, path) {
    case .equal(let count): return count
    case .different(let offset):
      throw DemoError("\(item.relative) differs at byte \(offset) from what arrived, \(path)")
    }
  }

  private func pushArguments(_ source: BytePath, _ destination: String, journal: String) -> [BytePath] {
    ["push", source, BytePath(destination), "--journal", stage.folder.appending(BytePath("\(journal).sqlite"))]
  }

  /// Runs one push to its end, with its output for all to see.
  private func push(_ title: String, _ arguments: [BytePath], fileLimit: Int64? = nil) throws(DemoError) -> DemoRun {
    let watch = try FolderWatch(temporary)
    let began = ContinuousClock.now
    let child = try stage.start(arguments, fileLimit: fileLimit, environment: ["TMPDIR": temporary])
    let end = child.wait()
    var run = DemoRun(title: title, elapsed: began.duration(to: .now))
    try require(end)
    (run.peakMemory, run.written) = (end.peakMemory, end.written)
    run.temporaryFiles = watch.newNames().count
    return run
  }

  private func require(_ end: ChildProcess.End) throws(DemoError) {
    try stage.check()
    if end.signal == SIGXFSZ { throw DemoError("the push wrote more than it may into a file: SIGXFSZ ended it") }
    if end.status != 0 { throw DemoError("the push ended with \(end.text)") }
  }

  /// Reads what a push with `--json` says: bytes gone out, and at its end the byte it had begun at.
  @discardableResult
  private func follow(_ child: ChildProcess, _ progress: (Int64) -> Void) throws(DemoError) -> Int64? {
    var lines = LineReader(child.output)
    var resumedFrom: Int64?
    let isTerminal = Console.output.isTerminal
    while let line = lines.next() {
      if line.hasPrefix("{\"event\":\"progress\""), let sent = number("sent", in: line) {
        if isTerminal {
          Console.output.write(
            "\r  \(Quantity.text(bytes: sent)) of \(Quantity.text(bytes: largest.stamp.size)) sent\u{1B}[K")
          Console.output.flush()
        }
        progress(sent)
      } else if line.hasPrefix("{\"event\":\"done\"") {
        resumedFrom = number("resumed_from", in: line)
      } else if line.hasPrefix("{\"event\":\"failed\"") {
        say(line)
      }
    }
    if isTerminal { Console.output.write("\r\u{1B}[K") }
    return resumedFrom
  }

  /// A number in a line that we wrote ourselves.
  private func number(_ name: String, in line: String) -> Int64? {
    guard let start = line.utf8.firstRange(of: "\"\(name)\":".utf8)?.upperBound else { return nil }
    return Int64(line[start...].prefix { $0.isNumber })
  }

  private func say(_ text: String) {
    Console.output.write(text + "\n")
    Console.output.flush()
  }
}

/// As one would type it.
private func quoted(_ path: BytePath) -> String {
  let text = shown(path)
  let plain = text.allSatisfy { $0.isLetter || $0.isNumber || "/._-+~".contains($0) }
  return plain
    ? text : "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}

private let slash = UInt8(ascii: "/")
