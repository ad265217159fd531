import BlobTesting
import Blobs

/// A gate at which threads wait until it is opened and ignore cancellation, like a system call that blocks because a
/// disk or a server has failed.
package final class UncancellableGate: Sendable {
  private let state = Monitor((entered: 0, isOpen: false))

  package init() {}

  /// Blocks the calling thread until the gate is open.
  package func pass() {
    state.update { $0.entered += 1 }
    state.wait { $0.isOpen ? () : nil }
  }

  package func open() { state.update { $0.isOpen = true } }

  /// Returns when this many threads have reached the gate.
  package func entered(_ count: Int) async { while state.update({ $0.entered }) < count { await Task.yield() } }
}
