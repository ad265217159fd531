import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// Deliveries that block the thread that starts them, or bring nothing for long.
@Suite(.timeLimit(.minutes(2))) struct StalledDeliveryTests {
  /// Photos in iCloud were reported for which `requestData` calls its handlers before it returns.
  @Test(arguments: [FakeDelivery.Start.delivers, .waits])
  func aDeliveryThatCallsBackBeforeItHasStartedIsRead(_ start: FakeDelivery.Start) async throws {
    let pattern = PatternSource(length: 4 << 20, seed: 3)
    let bytes = try await onThread {
      let source = DeliveredSource(
        FakeDelivery(pattern, mode: start), name: "a film", capacity: 64 << 10, KeptDeliveries())
      let reader = try source.open(at: 0, Cancellation())
      let bytes = try all(of: reader)
      try reader.finish()
      return bytes
    }
    #expect(bytes == pattern.bytes(count: 4 << 20))
  }

  @Test func aReaderStopsADeliveryThatHasNotStarted() async throws {
    let delivery = FakeDelivery(PatternSource(length: 1 << 40), mode: .delivers)
    _ = try await onThread {
      let source = DeliveredSource(delivery, name: "a film", capacity: 64 << 10, KeptDeliveries())
      let reader = try source.open(at: 100, Cancellation())
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 1)
      defer { buffer.deallocate() }
      return try reader.read(into: buffer)
    }
    try await eventually { delivery.state.withLock { $0.stopped == [1] && !$0.wasStuck } }
  }

  /// The result of work that blocks; a failure after a while, since a thread cannot be cancelled.
  private func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    let shared = Shared<Value>()
    SystemThread.start("test") { shared.set(Result { try body() }) }
    try await eventually { shared.value != nil }
    return try #require(shared.value).get()
  }
}

private final class Shared<Value: Sendable>: Sendable {
  private let state = Mutex<Result<Value, any Error>?>(nil)
  var value: Result<Value, any Error>? { state.withLock { $0 } }
  func set(_ value: Result<Value, any Error>) { state.withLock { $0 = value } }
}

private func all(of reader: any BlobReader) throws -> [UInt8] {
  var bytes: [UInt8] = []
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 7777, alignment: 1)
  defer { buffer.deallocate() }
  while case let count = try reader.read(into: buffer), count > 0 { bytes += buffer.prefix(count) }
  return bytes
}
