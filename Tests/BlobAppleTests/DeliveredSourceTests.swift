import BlobTesting
import Blobs
import Platform
import Testing

@testable import BlobApple

struct DeliveredSourceTests {
  @Test(arguments: SourceFixture.delivered, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  /// An asset of 4 GiB that is delivered as fast as it can be, and read slowly at first.
  @Test func fourGiBNeedLittleMemory() throws {
    let pattern = PatternSource(length: 4 << 30, seed: 3)
    let delivery = FakeDelivery(pattern)
    let before = try #require(memory("VmRSS"))
    #expect(forgetPeak())
    let reader = try DeliveredSource(delivery, name: "a film").open(at: 0, Cancellation())
    // Nobody reads yet: what is delivered fills the pipe, and then PhotoKit's thread waits.
    while delivery.state.withLock({ $0.pieces }) < 17 { usleep(1000) }
    usleep(50_000)
    #expect(delivery.state.withLock { $0.pieces } == 17)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while case let count = try reader.read(into: buffer), count > 0 {
      if offset % (64 << 20) == 0 {
        #expect(Array(buffer.prefix(min(count, 4096))) == pattern.bytes(at: offset, count: min(count, 4096)))
      }
      offset += Int64(count)
    }
    try reader.finish()
    #expect(offset == 4 << 30)
    let grown = try #require(memory("VmHWM")) - before
    #expect(grown < 8 << 20, "memory has grown by \(grown) bytes")
  }

  @Test func aPhotoThatIsEditedWhileItIsReadIsChanged() throws {
    let delivery = FakeDelivery(PatternSource(length: 8 << 20))
    let reader = try DeliveredSource(delivery, name: "a photo", capacity: 64 << 10).open(at: 0, Cancellation())
    #expect(try read(reader, 1000) == 1000)
    delivery.edit()
    #expect(code { while try read(reader, 1 << 20) > 0 {} } == .changed)
  }

  @Test func aPhotoThatIsEditedAfterItsLastByteIsChanged() throws {
    let delivery = FakeDelivery(PatternSource(length: 1000))
    let reader = try DeliveredSource(delivery, name: "a photo").open(at: 0, Cancellation())
    #expect(try read(reader, 1000) == 1000)
    try reader.finish()
    delivery.edit()
    #expect(code { try reader.finish() } == .changed)
  }

  /// As with a download from iCloud that breaks off: `ReopeningSource` goes on at the same byte.
  @Test func aDownloadThatBreaksOffGoesOnAtTheSameByte() throws {
    let pattern = PatternSource(length: 300_000, seed: 4)
    let broken = FakeDelivery(
      pattern, pieceSize: 10_000, failure: (at: 123_456, error: BlobError(.invalidated, "the download broke off")))
    let source = ReopeningSource(Breaking(first: broken, then: FakeDelivery(pattern)))
    let reader = try source.open(at: 1000, Cancellation())
    var bytes: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 7777, alignment: 1)
    defer { buffer.deallocate() }
    while case let count = try reader.read(into: buffer), count > 0 { bytes += buffer.prefix(count) }
    #expect(bytes == pattern.bytes(at: 1000, count: 299_000))
  }

  @Test func aFailureOnTheWayToTheOffsetIsThrownByOpen() {
    let delivery = FakeDelivery(
      PatternSource(length: 300_000), failure: (at: 100_000, error: BlobError(.permission, "access was taken away")))
    #expect(
      code { _ = try DeliveredSource(delivery, name: "a photo").open(at: 200_000, Cancellation()) } == .permission)
  }

  /// A delivery that has begun on another thread is stopped once the call that starts it has returned.
  @Test func aReaderThatGoesAwayStopsTheDelivery() async throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 40))
    var reader: (any BlobReader)? = try DeliveredSource(delivery, name: "a film").open(at: 0, Cancellation())
    #expect(try read(#require(reader), 10) == 10)
    reader = nil
    try await eventually { delivery.state.withLock { $0.stopped == [1] } }
  }

  /// PhotoKit may wait for its handler when a request is cancelled, and the handler waits for room in the pipe.
  @Test func aPieceThatWaitsForRoomDoesNotHoldUpTheStop() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 40))
    var reader: (any BlobReader)? = try DeliveredSource(delivery, name: "a film", KeptDeliveries()).open(
      at: 0, Cancellation())
    #expect(try read(#require(reader), 10) == 10)
    while delivery.state.withLock({ $0.pieces }) < 17 { usleep(1000) }
    reader = nil
    #expect(delivery.state.withLock { $0.stopped == [1] && !$0.wasStuck })
  }

  /// Its bytes would be those of the second version, under the name of the first.
  @Test func anEditBetweenTheLookAndTheStartIsFoundByOpen() async throws {
    let delivery = FakeDelivery(PatternSource(length: 1000), isEditedAtStart: true)
    #expect(code { _ = try DeliveredSource(delivery, name: "a photo").open(at: 0, Cancellation()) } == .changed)
    try await eventually { delivery.state.withLock { $0.stopped == [1] } }
  }

  @Test(arguments: [0, 1000] as [Int64]) func aDeliveryThatIsGivenUpEndsOpenAndRead(offset: Int64) {
    let delivery = FakeDelivery(PatternSource(length: 8 << 20), givesUp: true)
    let outcome = Monitor<BlobError.Code??>(nil)
    SystemThread.start("reader") {
      let found = self.code {
        let reader = try DeliveredSource(delivery, name: "a film").open(at: offset, Cancellation())
        _ = try self.read(reader, 10)
      }
      outcome.update { $0 = .some(found) }
    }
    #expect(outcome.wait(atMost: .seconds(5)) { $0 } == .some(.invalidated))
  }

  /// PhotoKit may keep its handlers and call none of them.
  @Test func anOpenAtAnOffsetCanBeCancelled() {
    let delivery = FakeDelivery(PatternSource(length: 8 << 20), stallsAt: 1 << 20)
    let (outcome, cancel) = (Monitor<BlobError.Code??>(nil), Cancellation())
    SystemThread.start("reader") {
      let found = self.code { _ = try DeliveredSource(delivery, name: "a film").open(at: 4 << 20, cancel) }
      outcome.update { $0 = .some(found) }
    }
    #expect(outcome.wait(atMost: .milliseconds(50)) { $0 } == nil)
    cancel.cancel()
    #expect(outcome.wait(atMost: .seconds(5)) { $0 } == .some(.cancelled))
    #expect(delivery.state.withLock { $0.stopped } == [1])
  }

  @Test func otherBytesThanTheLengthSaysAreFound() throws {
    for (told, expected) in [(999, BlobError.Code.changed), (1001, .truncated)] as [(Int64, BlobError.Code)] {
      let delivery = FakeDelivery(PatternSource(length: 1000), told: told)
      let reader = try DeliveredSource(delivery, name: "a photo").open(at: 0, Cancellation())
      #expect(code { while try read(reader, 4096) > 0 {} } == expected)
    }
  }

  /// Fails the first time it is opened, and delivers everything after that.
  private struct Breaking: BlobSource {
    let first: FakeDelivery
    let then: FakeDelivery
    let opened = Monitor(false)
    var access: BlobAccess { .random }
    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try first.info(cancel) }
    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      let wasOpened = opened.update { opened in
        defer { opened = true }
        return opened
      }
      return try DeliveredSource(wasOpened ? then : first, name: "a photo").open(at: offset, cancel)
    }
  }

  private func read(_ reader: any BlobReader, _ count: Int) throws -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { buffer.deallocate() }
    return try reader.read(into: buffer)
  }

  private func code(_ body: () throws -> Void) -> BlobError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? BlobError)?.code
    }
  }
}

extension SourceFixture {
  static let delivered = [0, 1, 5000, 300_000].flatMap { (length: Int64) in
    [nil, length].map { told in
      let pattern = PatternSource(length: length, seed: 2)
      return SourceFixture(
        "a delivery of \(length), \(told == nil ? "length unknown" : "length told")", like: pattern,
        knowsLength: told != nil,
        stalled: { DeliveredSource(FakeDelivery(pattern, isStalled: true), name: "a stalled delivery") },
        make: { DeliveredSource(FakeDelivery(pattern, pieceSize: 4000, told: told), name: "a delivery") })
    }
  }
}

/// Bytes, from the kernel's account of this process.
private func memory(_ field: String) -> Int? {
  guard let file = fopen("/proc/self/status", "r") else { return nil }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  while fgets(&line, 256, file) != nil {
    let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split {
      $0 == ":" || $0 == " " || $0 == "\t"
    }
    if words.first.map({ $0 == field }) == true, words.count > 1 { return Int(words[1]).map { $0 << 10 } }
  }
  return nil
}

/// Lets the kernel begin a new account of the most memory.
private func forgetPeak() -> Bool {
  guard let file = fopen("/proc/self/clear_refs", "w") else { return false }
  defer { fclose(file) }
  return fputs("5", file) >= 0
}
