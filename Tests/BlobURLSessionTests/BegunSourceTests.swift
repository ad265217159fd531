import BlobTesting
import Blobs
import Foundation
import Testing

@testable import BlobURLSession

/// A source that is opened before the request is made to which its bytes belong.
@Suite(.timeLimit(.minutes(1))) struct BegunSourceTests {
  private let pattern = PatternSource(length: 1000)

  /// The end of a source on a server may be a question to that server.
  @Test func aFinishThatWaitsIsEndedByItsCancellation() throws {
    let gate = ThreadGate()
    let source = BegunSource(GatedSource(source: pattern, gate: gate, at: .finishing))
    try source.begin(Cancellation())
    let cancel = Cancellation()
    SystemThread.start("canceller") {
      _ = gate.awaitVisitor()
      cancel.cancel()
      Thread.sleep(forTimeInterval: 0.5)
      // Otherwise the test would never end if the cancellation did not arrive.
      gate.open()
    }
    let reader = try source.open(at: 0, cancel)
    var buffer = [UInt8](repeating: 0, count: 2000)
    while try buffer.withUnsafeMutableBytes({ try reader.read(into: $0) }) > 0 {}
    let error = #expect(throws: BlobError.self) { try reader.finish() }
    #expect(error?.code == .cancelled)
  }

  @Test func aSourceThatIsLostForLongIsOpenedOnce() {
    let lost = FaultySource(pattern, .invalidate(at: 0, times: .max))
    let source = BegunSource(lost, patience: .zero)
    let error = #expect(throws: BlobError.self) { try source.begin(Cancellation()) }
    #expect(error?.code == .invalidated)
    #expect(lost.openings == 1)
  }
}
