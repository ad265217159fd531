import BlobTesting
import Blobs
import Platform
import Testing

@testable import BlobApple

/// Deliveries that wait for the next reader of their source.
@Suite(.timeLimit(.minutes(2))) struct KeptDeliveriesTests {
  /// The tests count its ticks themselves.
  private let deliveries = KeptDeliveries(interval: .seconds(3600))

  /// An upload looks one byte ahead before each part, and opens the source once more for the part.
  @Test func aFilmThatIsReadInPartsIsDeliveredOnce() throws {
    let pattern = PatternSource(length: 1 << 20, seed: 5)
    let delivery = FakeDelivery(pattern, pieceSize: 10_000)
    let source = DeliveredSource(delivery, name: "a film", deliveries)
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
    let source = DeliveredSource(delivery, name: "a photo", deliveries)
    _ = try read(source, from: 0, 1000)
    delivery.state.withLock { $0.info.validator = Validator(version: "2") }
    let reader = try source.open(at: 1000, Cancellation())
    #expect(reader.info.validator == Validator(version: "2"))
    #expect(delivery.state.withLock { $0.begun } == 2)
  }

  /// PhotoKit's connection may break while the app is suspended.
  @Test func aKeptDeliveryThatHasFailedIsNotReadOn() throws {
    let delivery = FakeDelivery(PatternSource(length: 8 << 20))
    let source = DeliveredSource(delivery, name: "a film", deliveries)
    _ = try read(source, from: 0, 100_000)
    delivery.state.withLock { $0.end }?(BlobError(.io, "the connection broke"))
    #expect(try read(source, from: 100_000, 1000) == delivery.pattern.bytes(at: 100_000, count: 1000))
    #expect(delivery.state.withLock { $0.begun } == 2)
  }

  @Test func aKeptDeliveryIsStoppedWithItsSource() throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 20))
    var source: DeliveredSource? = DeliveredSource(delivery, name: "a photo", deliveries)
    _ = try read(#require(source), from: 0, 1000)
    #expect(delivery.state.withLock { $0.stopped.isEmpty })
    source = nil
    #expect(delivery.state.withLock { $0.stopped } == [1])
  }

  /// The system may deliver by one queue, which a delivery that nobody reads holds up.
  @Test func keptDeliveriesGiveWayToOneThatWaitsForItsFirstByte() throws {
    let (film, source) = try keptFilm()
    let waiting = FakeDelivery(PatternSource(length: 1), isStalled: true)
    let ticks = wait(for: waiting, at: 0) { film.state.withLock { $0.stopped.isEmpty } }
    #expect(ticks >= KeptDeliveries.patience && ticks < KeptDeliveries.mostAge)
    #expect(film.state.withLock { $0.stopped } == [1])
    // Without one that waits, it is kept.
    #expect(try read(source, from: 1000, 10) == film.pattern.bytes(at: 1000, count: 10))
    for _ in 0..<KeptDeliveries.patience * 2 { #expect(deliveries.tick()) }
    #expect(film.state.withLock { $0.stopped } == [1])
  }

  /// A slow download from iCloud: the system calls its handler, so nothing holds it up.
  @Test(arguments: [0, 4 << 20] as [Int64]) func keptDeliveriesStayWhileOneThatHasBegunIsSlow(offset: Int64) throws {
    let (film, source) = try keptFilm()
    defer { withExtendedLifetime(source) {} }
    let slow = FakeDelivery(PatternSource(length: 8 << 20), stallsAt: 64 << 10)
    var left = KeptDeliveries.mostAge - 1
    _ = wait(for: slow, at: offset) {
      left -= 1
      return left > 0
    }
    #expect(film.state.withLock { $0.stopped.isEmpty })
  }

  @Test func keptDeliveriesStayWhileAnotherIsDownloaded() throws {
    let (film, source) = try keptFilm()
    defer { withExtendedLifetime(source) {} }
    let download = FakeDelivery(PatternSource(length: 8 << 20), isStalled: true)
    var left = KeptDeliveries.mostAge - 1
    _ = wait(for: download, at: 0) {
      if left % (KeptDeliveries.patience - 2) == 0 { download.giveSign() }
      left -= 1
      return left > 0
    }
    #expect(film.state.withLock { $0.stopped.isEmpty })
  }

  /// Requests of the app itself may wait for it, and are not seen.
  @Test func aDeliveryThatNobodyUsesIsStoppedAfterAMinute() throws {
    let film = FakeDelivery(PatternSource(length: 8 << 20))
    let source = DeliveredSource(film, name: "a film", deliveries)
    for offset in [0, 1000] as [Int64] {
      _ = try read(source, from: offset, 1000)
      for _ in 1..<KeptDeliveries.mostAge { #expect(deliveries.tick()) }
      #expect(film.state.withLock { $0.stopped.isEmpty })
    }
    #expect(!deliveries.tick())
    #expect(film.state.withLock { $0.stopped } == [1])
  }

  @Test func ticksComeByThemselvesWhileThereIsSomethingToCount() async throws {
    let deliveries = KeptDeliveries(interval: .milliseconds(1))
    for _ in 0..<2 {
      let (film, source) = try keptFilm(by: deliveries)
      try await eventually { film.state.withLock { $0.stopped } == [1] }
      withExtendedLifetime(source) {}
    }
  }

  /// Reads from `delivery` on a thread, and counts ticks, which it returns, while that waits and `goesOn` returns true.
  private func wait(for delivery: FakeDelivery, at offset: Int64, while goesOn: () -> Bool) -> Int {
    let (cancel, hasEnded) = (Cancellation(), Monitor(false))
    let source = DeliveredSource(delivery, name: "a photo", deliveries)
    SystemThread.start("waiting") {
      _ = try? self.read(source, from: offset, 1 << 20, cancel)
      hasEnded.update { $0 = true }
    }
    let pieces = delivery.isStalled ? 0 : 1
    while delivery.state.withLock({ $0.begun == 0 || $0.pieces < pieces }) { usleep(1000) }
    // Then the thread waits for what does not come.
    usleep(100_000)
    var ticks = 0
    while goesOn(), ticks < 1000 {
      _ = deliveries.tick()
      ticks += 1
    }
    cancel.cancel()
    hasEnded.wait { $0 ? () : nil }
    return ticks
  }

  @Test func noMoreThan32DeliveriesAreKept() throws {
    let films = (0..<33).map { _ in FakeDelivery(PatternSource(length: 1 << 20)) }
    let sources = films.map { DeliveredSource($0, name: "a film", capacity: 4096, deliveries) }
    for source in sources { _ = try read(source, from: 0, 10) }
    #expect(films.map { $0.state.withLock { $0.stopped.count } } == [1] + Array(repeating: 0, count: 32))
  }

  /// A film of which somebody has read the beginning, so that its delivery is kept. It stays as long as the source does.
  private func keptFilm(by keeper: KeptDeliveries? = nil) throws -> (film: FakeDelivery, source: DeliveredSource) {
    let film = FakeDelivery(PatternSource(length: 8 << 20))
    let source = DeliveredSource(film, name: "a film", keeper ?? deliveries)
    _ = try read(source, from: 0, 1000)
    return (film, source)
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
}
