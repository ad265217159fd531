import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@testable import fullbore

/// Walks over folders and files whose disk or server does not respond: the system call does not return.
@Suite struct StuckWalkTests {
  let scratch = Scratch()
  private let counters = PushCounters()

  private func walk(
    _ words: [BytePath], patience: Duration = .seconds(300),
    entering: @escaping @Sendable (BytePath, BytePath) -> Void = { _, _ in }
  ) throws -> PushWalk {
    let options = try PushOptions(Arguments(["--quiet"] + words + ["http://host/"], PushCommand.declaration))
    return PushWalk(
      options, pushReport(options.output, counters), counters, reads: SourceReads(patience: patience),
      entering: entering)
  }

  private func names(_ walk: PushWalk) async -> [BytePath] {
    var names: [BytePath] = []
    while let found = await walk.next() { names += found.map(\.identity.name) }
    return names
  }

  @Test func aWalkInAStuckFolderIsCancelledAtOnce() async throws {
    let gate = UncancellableGate()
    defer { gate.open() }
    scratch.file("stuck/photo")
    let walk = try walk([scratch.path.appending("stuck")]) { _, _ in gate.pass() }
    let task = Task { await names(walk) }
    await gate.entered(1)
    task.cancel()
    #expect(await task.value == [])
    let isListed = counters.isListed.load(ordering: .relaxed)
    #expect(!isListed)
  }

  /// There are more stuck walks than threads in a pool of the usual size.
  @Test func stuckWalksHoldUpNoOther() async throws {
    let gate = UncancellableGate()
    defer { gate.open() }
    scratch.file("stuck/photo")
    scratch.file("other/photo")
    let walks = try (0..<8).map { _ in try walk([scratch.path.appending("stuck")]) { _, _ in gate.pass() } }
    let other = try walk([scratch.path.appending("other")])
    await withTaskGroup(of: Void.self) { group in
      for walk in walks { group.addTask { _ = await walk.lookAhead() } }
      await gate.entered(8)
      #expect(await names(other) == ["photo"])
      group.cancelAll()
    }
  }

  @Test func aStuckFolderIsGivenUpAndTheOtherSourcesAreFound() async throws {
    let gate = UncancellableGate()
    defer { gate.open() }
    for name: BytePath in ["first/1", "stuck/2", "last/3", "last/stuck/4", "last/z/5"] { scratch.file(name) }
    let sources = ["first", "stuck", "last"].map { scratch.path.appending($0) }
    let walk = try walk(sources, patience: .milliseconds(30)) { path, _ in if path.name == "stuck" { gate.pass() } }
    #expect(await names(walk) == ["1", "3", "5"])
    let isIncomplete = counters.isIncomplete.load(ordering: .relaxed)
    #expect(counters.files.failed == 2 && isIncomplete)
  }

  @Test func anItemThatIsStuckHoldsUpNoOther() async {
    let gate = UncancellableGate()
    defer { gate.open() }
    let reads = SourceReads(patience: .milliseconds(30))
    let values = await reads.each(Array(1...5)) { number in
      if number == 1 || number == 3 { gate.pass() }
      return number
    }
    #expect(values == [nil, 2, nil, 4, 5])
  }
}
