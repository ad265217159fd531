#if os(Linux)
  import Blobs
  import Platform

  /// A write lease on a file, as Samba takes one for a client that may have written bytes which it has not sent yet.
  /// fcntl(2) describes them.
  package final class FileLease: Sendable {
    private static let (setSignal, setLease, getLease): (Int32, Int32, Int32) = (10, 1024, 1025)
    private let descriptor: Int32

    /// nil: the system gives no lease here.
    package init?(_ path: BytePath) {
      descriptor = path.open(O_RDWR)
      if descriptor < 0 || !take() { return nil }
    }

    /// Takes the lease again after `giveUp`. false: the system gives none here.
    package func take() -> Bool {
      // SIGURG is ignored; SIGIO, which the system sends otherwise, would end the process.
      fcntl(descriptor, Self.setSignal, SIGURG) == 0 && fcntl(descriptor, Self.setLease, Int32(F_WRLCK)) == 0
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Whether somebody has tried to open the file, and must wait until the lease is given up.
    package var isWanted: Bool { fcntl(descriptor, Self.getLease, 0) != Int32(F_WRLCK) }

    /// Keeps the file open.
    package func giveUp() { _ = fcntl(descriptor, Self.setLease, Int32(F_UNLCK)) }

    /// Gives the lease up `delay` after somebody wanted the file. The result is false if nobody did.
    package func giveUp(after delay: Duration, within limit: Duration = .seconds(30)) -> Background<Bool> {
      Background { [self] in
        let clock = MonotonicClock()
        let deadline = clock.now + limit
        while !isWanted {
          if clock.now > deadline { return false }
          usleep(2000)
        }
        usleep(UInt32(delay / .microseconds(1)))
        giveUp()
        return true
      }
    }
  }
#endif
