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

  @Test func aReaderThatGoesAwayStopsTheDelivery() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 40))
    var reader: (any BlobReader)? = try DeliveredSource(delivery, name: "a film").open(at: 0, Cancellation())
    #expect(try read(#require(reader), 10) == 10)
    reader = nil
    #expect(delivery.state.withLock { $0.stopped == [1] })
  }

  /// An upload looks one byte ahead before each part, and opens the source once more for the part.
  @Test func aFilmThatIsReadInPartsIsDeliveredOnce() throws {
    let pattern = PatternSource(length: 1 << 20, seed: 5)
    let delivery = FakeDelivery(pattern, pieceSize: 10_000)
    let source = DeliveredSource(delivery, name: "a film", KeptDeliveries())
    var bytes: [UInt8] = []
    for part in 0..<16 {
      let offset = Int64(part) << 16
      #expect(try read(source, from: offset, 1) == pattern.bytes(at: offset, count: 1))
      bytes += try read(source, from: offset, 1 << 16)
    }
    #expect(try read(source, from: 1 << 20, 1).isEmpty)
    #expect(bytes == pattern.bytes(at: 0, count: 1 << 20))
    #expect(delivery.state.withLock { $0.begun } == 1)
    // Bytes that are gone need another delivery, and the one that was kept is stopped.
    #expect(try read(source, from: 100, 50) == pattern.bytes(at: 100, count: 50))
    #expect(delivery.state.withLock { $0.begun == 2 && $0.stopped == [1] })
    #expect(try read(source, from: 120, 10_000) == pattern.bytes(at: 120, count: 10_000))
    #expect(delivery.state.withLock { $0.begun } == 2)
  }

  @Test func aKeptDeliveryOfAnOlderVersionIsNotReadOn() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 20))
    let source = DeliveredSource(delivery, name: "a photo", KeptDeliveries())
    _ = try read(source, from: 0, 1000)
    delivery.state.withLock { $0.info.validator = Validator(version: "2") }
    let reader = try source.open(at: 1000, Cancellation())
    #expect(reader.info.validator == Validator(version: "2"))
    #expect(delivery.state.withLock { $0.begun } == 2)
  }

  /// PhotoKit's connection may break while the app is suspended.
  @Test func aKeptDeliveryThatHasFailedIsNotReadOn() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 20))
    let source = DeliveredSource(delivery, name: "a film", KeptDeliveries())
    _ = try read(source, from: 0, 100_000)
    delivery.state.withLock { $0.end }?(BlobError(.io, "the connection broke"))
    #expect(try read(source, from: 100_000, 1000) == delivery.pattern.bytes(at: 100_000, count: 1000))
    #expect(delivery.state.withLock { $0.begun } == 2)
  }

  @Test func aKeptDeliveryIsStoppedWithItsSource() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 20))
    var source: DeliveredSource? = DeliveredSource(delivery, name: "a photo", KeptDeliveries())
    _ = try read(#require(source), from: 0, 1000)
    #expect(delivery.state.withLock { $0.stopped.isEmpty })
    source = nil
    #expect(delivery.state.withLock { $0.stopped } == [1])
  }

  /// The system may deliver by one queue, which a delivery that nobody reads holds up.
  @Test func keptDeliveriesGiveWayToOneThatWaits() async throws {
    let deliveries = KeptDeliveries(patience: .milliseconds(50))
    let film = FakeDelivery(PatternSource(length: 8 << 20))
    let source = DeliveredSource(film, name: "a film", deliveries)
    _ = try read(source, from: 0, 1000)
    let waiting = DeliveredSource(FakeDelivery(PatternSource(length: 1), isStalled: true), name: "a photo", deliveries)
    let cancel = Cancellation()
    let thread = Monitor(false)
    SystemThread.start("waiting") {
      _ = try? self.read(waiting, from: 0, 1, cancel)
      thread.update { $0 = true }
    }
    try await eventually { film.state.withLock { $0.stopped } == [1] }
    cancel.cancel()
    thread.wait { $0 ? () : nil }
    // Without one that waits, it would have been kept.
    #expect(try read(source, from: 1000, 10) == film.pattern.bytes(at: 1000, count: 10))
    try await Task.sleep(for: .milliseconds(200))
    #expect(film.state.withLock { $0.stopped } == [1])
  }

  @Test func noMoreThan32DeliveriesAreKept() throws {
    let deliveries = KeptDeliveries()
    let films = (0..<33).map { _ in FakeDelivery(PatternSource(length: 1 << 20)) }
    let sources = films.map { DeliveredSource($0, name: "a film", capacity: 4096, deliveries) }
    for source in sources { _ = try read(source, from: 0, 10) }
    #expect(films.map { $0.state.withLock { $0.stopped.count } } == [1] + Array(repeating: 0, count: 32))
  }

  private func read(
    _ source: DeliveredSource, from offset: Int64, _ count: Int, _ cancel: Cancellation = Cancellation()
  ) throws -> [UInt8] {
    let reader = try source.open(at: offset, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while bytes.count < count {
      let read = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count - bytes.count)))
      if read == 0 { break }
      bytes += buffer.prefix(read)
    }
    return bytes
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
