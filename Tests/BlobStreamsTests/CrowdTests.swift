import BlobStreams
import BlobTesting
import Blobs
import Foundation
import Synchronization
import Testing

@Suite(.serialized) struct CrowdTests {
  @Test(arguments: [false, true]) func streamsThatAreDroppedOpenLeaveNothing(asynchronous: Bool) throws {
    let folder = try ScratchFolder()
    let path = folder.path.appending("file.bin")
    try Data(count: 10_000).write(to: URL(filePath: path.description))
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -60)], ofItemAtPath: path.description)
    let source = TrackedSource(FileSource(path))
    let threads = [LoopThread(), LoopThread()]
    let events = EventLog()
    let alive = Monitor(0)
    let before = descriptors()
    for number in 0..<10_000 {
      autoreleasing {
        let stream = BlobInputStream(source, asynchronous: asynchronous)
        alive.update { $0 += 1 }
        let context = StreamClient.Context(release: { _ in alive.update { $0 -= 1 } })
        stream.setClient(StreamClient(.openCompleted, context: context) { _, _, _ in })
        stream.delegate = events
        for thread in threads { stream.schedule(in: thread.loop, forMode: .default) }
        stream.open()
        if number % 7 == 0 { _ = stream.readOnce(100) }
      }
    }
    #expect(waitUntil { alive.update { $0 } == 0 }, "\(alive.update { $0 }) streams are left")
    #expect(waitUntil { source.readers == 0 }, "\(source.readers) readers are left")
    #expect(waitUntil { descriptors() <= before }, "\(descriptors()) descriptors instead of \(before)")
    for thread in threads { thread.stop() }
  }

  @Test func manySlowStreamsOpenOnFewThreads() {
    let gate = ThreadGate()
    let streams = (0..<1000).map { number in
      BlobInputStream(
        GatedSource(source: DataSource("\(number)"), gate: gate, at: .opening), asynchronous: true)
    }
    let thread = LoopThread()
    let log = EventLog()
    for stream in streams {
      stream.delegate = log
      stream.schedule(in: thread.loop, forMode: .default)
      stream.open()
    }
    #expect(waitUntil { StreamThreads.fetching.count == 64 })
    #expect(streams.allSatisfy { $0.streamStatus == .opening })
    gate.open()
    #expect(waitUntil { log.count(.hasBytesAvailable) == 1000 })
    #expect(StreamThreads.fetching.count <= 64)
    #expect(log.count(.openCompleted) == 1000 && log.entries.allSatisfy { $0.thread === thread.thread })
    for (number, stream) in streams.enumerated() { #expect(stream.readOnce(10) == Array("\(number)".utf8)) }
    thread.stop()
  }

  @Test(arguments: [false, true]) func noEventIsLostOrGoesAstray(asynchronous: Bool) {
    // The streams are scheduled in two loops. One loop sometimes runs in another mode, in which no event may arrive.
    let count: Int64 = 100_000
    let source = PatternSource(length: count, preferredRead: 1)
    let stream = BlobInputStream(source, asynchronous: asynchronous, block: 64)
    let threads = [LoopThread(), LoopThread()]
    let tally = Tally(threads.map(\.thread))
    stream.delegate = tally
    for thread in threads {
      stream.schedule(in: thread.loop, forMode: .default)
      stream.schedule(in: thread.loop, forMode: RunLoop.Mode("never run"))
    }
    stream.open()
    // The end event may arrive in one loop before the other loop has counted the last read.
    #expect(waitUntil(atMost: .seconds(120)) { tally.hasEnded && tally.read >= count })
    #expect(tally.read == count && tally.wanted == count)
    #expect(tally.astray == 0)
    for thread in threads { thread.stop() }
  }

  /// Reads a byte at each event, and counts.
  private final class Tally: NSObject, StreamDelegate, @unchecked Sendable {
    // Only atomics change.
    private let threads: Set<ObjectIdentifier>
    private let readCount = Atomic<Int64>(0)
    private let wantedCount = Atomic<Int64>(0)
    private let astrayCount = Atomic(0)
    private let isOver = Atomic(false)
    init(_ threads: [Thread]) { self.threads = Set(threads.map(ObjectIdentifier.init)) }
    var read: Int64 { readCount.load(ordering: .relaxed) }
    var wanted: Int64 { wantedCount.load(ordering: .relaxed) }
    var astray: Int { astrayCount.load(ordering: .relaxed) }
    var hasEnded: Bool { isOver.load(ordering: .acquiring) }

    func stream(_ stream: Stream, handle event: Stream.Event) {
      if !threads.contains(ObjectIdentifier(Thread.current)) || RunLoop.current.currentMode != .default {
        astrayCount.add(1, ordering: .relaxed)
      }
      if event == .endEncountered { isOver.store(true, ordering: .releasing) }
      guard event == .hasBytesAvailable, let stream = stream as? BlobInputStream else { return }
      wantedCount.add(1, ordering: .relaxed)
      var byte: UInt8 = 0
      readCount.add(Int64(stream.read(&byte, maxLength: 1)), ordering: .relaxed)
    }
  }
}

/// Polls a condition.
func waitUntil(atMost limit: Duration = .seconds(20), _ condition: () -> Bool) -> Bool {
  let clock = MonotonicClock()
  let deadline = clock.now + limit
  while !condition() {
    if clock.now > deadline { return false }
    Thread.sleep(forTimeInterval: 0.002)
  }
  return true
}

private func autoreleasing(_ body: () -> Void) {
  #if canImport(ObjectiveC)
    autoreleasepool(invoking: body)
  #else
    body()
  #endif
}

/// Open files of this process in a scratch folder; other tests have their own.
private func descriptors() -> Int {
  let folder = "/proc/self/fd"
  let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []  // empty where there is no /proc
  return names.count { name in
    // nil if it was closed meanwhile
    let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
    return target?.contains("fullbore-check-") ?? false
  }
}
