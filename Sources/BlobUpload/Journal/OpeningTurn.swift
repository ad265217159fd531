import Blobs
import Platform

/// Runs `body` while no other process opens a journal in the same folder or moves a damaged one aside. SQLite finds a
/// database's logs by name: a process that is opening the damaged file could take the logs of the new file for its own,
/// and delete them.
///
/// The folder is locked, so no lock file is left behind. If the lock cannot be acquired within 5 s, because the file
/// system has no locks or a process is stopped, `body` runs without it.
func inOpeningTurn<Result, Failure>(
  at path: BytePath, _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
  let parts = path.absolute().components.dropLast()
  let folder = parts.reduce(BytePath("/")) { $0.appending($1) }
  let descriptor = folder.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
  defer { if descriptor >= 0 { close(descriptor) } }
  let end = ContinuousClock.now + .seconds(5)
  while descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK || errno == EINTR,
    ContinuousClock.now < end
  { usleep(1000) }
  return try body()
}
