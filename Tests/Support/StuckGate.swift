import BlobTesting
import Blobs

/// A place where threads wait until it is opened and hear of no cancellation, as in a call of the system's that does not
/// return because a disk or a server is gone.
package final class StuckGate: Sendable {
  private let state = Monitor((entered: 0, isOpen: false))

  package init() {}

  /// Blocks the calling thread until the gate is open.
  package func pass() {
    state.update { $0.entered += 1 }
    state.wait { $0.isOpen ? () : nil }
  }

  package func open() { state.update { $0.isOpen = true } }

  /// Returns when so many threads have come to the gate.
  package func entered(_ count: Int) async { while state.update({ $0.entered }) < count { await Task.yield() } }
}
