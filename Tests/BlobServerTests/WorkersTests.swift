import Blobs
import Synchronization
import Testing

@testable import BlobServer

struct WorkersTests {
  /// The system limits the threads of a user, of a service and of a container.
  @Test(arguments: 0...4) func allWorkIsDoneByTheThreadsThatTheSystemAllows(_ allowed: Int) {
    let tries = Atomic(0)
    let workers = Workers(threads: 4) { body in
      // The system may allow the first thread only later.
      let number = tries.add(1, ordering: .relaxed).newValue
      return number > 1 && number <= allowed + 1 && SystemThread.startIfAllowed("test", body)
    }
    let done = Atomic(0)
    for _ in 0..<100 { workers.submit { done.add(1, ordering: .relaxed) } }
    workers.finish()
    #expect(done.load(ordering: .relaxed) == 100)
  }
}
