import Blobs
import Synchronization
import Testing

@testable import BlobServer

struct WorkersTests {
  /// The system limits the threads of a user, of a service and of a container.
  @Test(arguments: 1...4) func allWorkIsDoneByTheThreadsThatTheSystemAllows(_ allowed: Int) {
    let tries = Atomic(0)
    let workers = Workers(threads: 4) { body in
      let number = tries.add(1, ordering: .relaxed).newValue
      // The first try fails although there is no thread yet: the next work tries again.
      return 2...(allowed + 1) ~= number && SystemThread.startIfAllowed("test", body)
    }
    let done = Atomic(0)
    for _ in 0..<100 { workers.submit { done.add(1, ordering: .relaxed) } }
    workers.finish()
    #expect(done.load(ordering: .relaxed) == 100)
  }
}
