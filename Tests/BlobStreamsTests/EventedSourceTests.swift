import BlobStreams
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Testing

struct EventedSourceTests {
  private let cancel = Cancellation()
  private let pattern = PatternSource(length: 10_000, seed: 4)

  @Test(arguments: SourceFixture.evented, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  @Test(arguments: SourceFixture.evented, StreamCheck.all)
  func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }

  @Test func eventsThatComeLateTwiceOrAfterCloseAreIgnored() throws {
    let pass = ScriptedPass(pattern.bytes(count: 100))
    let source = EventedBlobSource { pass }
    pass.tellsTwice = true
    let reader = try source.open(at: 0, cancel)
    #expect(try readAll(reader) == pattern.bytes(count: 100))
    pass.tell(.failed(BlobError(.io, "too late")))
    #expect(try readAll(reader) == [], "an error after the end")
    try reader.finish()
    withExtendedLifetime(reader) {}
  }

  @Test func closedPassMayGoOnTelling() throws {
    let pass = ScriptedPass(pattern.bytes(count: 100))
    let source = EventedBlobSource { pass }
    do { _ = try source.open(at: 0, cancel) }
    #expect(pass.isClosed)
    for event in [SourceEvent.opened(BlobInfo(length: 7)), .bytesAvailable, .ended, .failed(BlobError(.io, "late"))] {
      pass.tell(event)
    }
    #expect(pass.readsAfterClose == 0)
  }

  @Test func failureReachesTheReaderAsItIs() {
    struct Odd: Error {}
    for (error, code) in [(BlobError(.permission, "no") as any Error, BlobError.Code.permission), (Odd(), .io)] {
      let pass = ScriptedPass([], opening: [.failed(error)])
      let thrown = failure { () throws(BlobError) in try EventedBlobSource { pass }.info(cancel) }
      #expect(thrown?.code == code && (code != .io || thrown?.cause is Odd))
      #expect(pass.isClosed, "a pass that failed to open was not closed")
    }
  }

  @Test func endWithoutOpeningIsAnError() {
    let pass = ScriptedPass([], opening: [.ended])
    #expect(failure { () throws(BlobError) in try EventedBlobSource { pass }.info(cancel) }?.code == .io)
  }

  @Test func readThatThrowsOrBoastsIsAnError() throws {
    struct Odd: Error {}
    for script: ScriptedPass.Misdeed in [.throwing(Odd()), .claiming(1 << 40), .claiming(-1)] {
      let pass = ScriptedPass(pattern.bytes(count: 100))
      pass.misdeed = script
      let reader = try EventedBlobSource { pass }.open(at: 0, cancel)
      #expect(throws: BlobError.self) { try readAll(reader) }
    }
  }

  @Test func lostPassIsFollowedByAnotherAtTheSameByte() throws {
    let passes = Monitor(0)
    let bytes = pattern.bytes(count: 10_000)
    let source = EventedBlobSource {
      let number = passes.update { passes in
        passes += 1
        return passes
      }
      let pass = ScriptedPass(bytes)
      if number == 1 { pass.misdeed = .losing(at: 5000) }
      return pass
    }
    let stream = BlobInputStream(source)
    stream.open()
    var read: [UInt8] = []
    while let chunk = stream.readOnce(999), !chunk.isEmpty { read += chunk }
    #expect(read == bytes && passes.update { $0 } == 2)
  }

  @Test func settingsReachEveryPass() throws {
    let made = Monitor<[ScriptedPass]>([])
    let source = EventedBlobSource {
      let pass = ScriptedPass([1, 2, 3])
      made.update { $0.append(pass) }
      return pass
    }
    let stream = BlobInputStream(source)
    #expect(stream.setProperty(NSString(string: "adjusted"), forKey: ScriptedPass.rendition))
    #expect(!stream.setProperty(NSString(string: "x"), forKey: Stream.PropertyKey("unknown")))
    #expect(stream.property(forKey: ScriptedPass.rendition) as? String == "adjusted")
    stream.open()
    #expect(stream.readOnce(10) == [1, 2, 3])
    #expect(made.update { $0.count } == 1, "the pass that was asked is the one that is opened")
    let again = stream.reopened()
    again.open()
    #expect(again.readOnce(10) == [1, 2, 3])
    #expect(
      made.update { $0.map { $0.property(forKey: ScriptedPass.rendition) as? String } } == ["adjusted", "adjusted"])
  }

  @MainActor @Test func waitingOnTheMainThreadForTheMainThreadIsRefused() {
    let stream = BlobInputStream(EventedBlobSource { ScriptedPass([1, 2, 3], answersOnMainThread: true) })
    let clock = MonotonicClock()
    let start = clock.now
    stream.open()
    #expect(stream.streamStatus == .error && stream.readOnce(1) == nil)
    #expect(BlobError(underlying: stream.streamError)?.code == .unsupported)
    #expect(clock.now - start < .seconds(10))
  }
}

extension SourceFixture {
  static let evented = [0, 1, 9, 5000, 300_000].flatMap { length -> [SourceFixture] in
    let bytes = PatternSource(length: Int64(length), seed: 6).bytes(count: length)
    let stalled: @Sendable () -> any BlobSource = { EventedBlobSource { ScriptedPass([], opening: []) } }
    return [
      SourceFixture("an evented source of \(length)", like: bytes, stalled: stalled) {
        EventedBlobSource { ScriptedPass(bytes) }
      },
      SourceFixture("an evented source of \(length) that cannot seek", like: bytes, knowsLength: false) {
        EventedBlobSource { ScriptedPass(bytes, knowsLength: false, canSeek: false) }
      },
    ]
  }
}

/// All bytes that a reader still returns.
private func readAll(_ reader: any BlobReader) throws(BlobError) -> [UInt8] {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
  defer { buffer.deallocate() }
  var bytes: [UInt8] = []
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { return bytes }
    bytes.append(contentsOf: buffer.prefix(count))
  }
}
