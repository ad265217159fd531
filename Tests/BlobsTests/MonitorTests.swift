import BlobTesting
import TestSupport
import Blobs
import Testing

struct MonitorTests {
  @Test func everyWaiterIsWokenByAnUpdate() {
    let monitor = Monitor(0)
    let waiters = (1...4).map { wanted in Background { monitor.wait { $0 >= wanted ? $0 : nil } } }
    monitor.update { $0 = 4 }
    #expect(waiters.allSatisfy { $0.value() == 4 })
  }

  @Test func waitEndsAtItsLimit() {
    let clock = MonotonicClock()
    let start = clock.now
    let never: Int? = Monitor(0).wait(atMost: .milliseconds(30)) { _ in nil }
    #expect(never == nil)
    #expect(clock.now - start >= .milliseconds(30))
    #expect(Monitor(7).wait(atMost: .zero) { $0 } == 7, "what is there already needs no time")
  }

  @Test func throwLeavesTheMonitorUnlocked() {
    let monitor = Monitor(0)
    #expect(
      failure { () throws(BlobError) in try monitor.update { _ throws(BlobError) in throw BlobError(.io, "") } } != nil)
    #expect(
      failure { () throws(BlobError) in try monitor.wait { _ throws(BlobError) -> Int? in throw BlobError(.io, "") } }
        != nil)
    #expect(monitor.update { $0 } == 0)
  }
}
