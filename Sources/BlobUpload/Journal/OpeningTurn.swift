import Blobs
import Platform

/// Runs `body` while no other process opens a journal of the same folder or keeps a damaged one aside. SQLite finds a
/// database's logs by name: who still opens a damaged file could take the logs of the new one for that one's, and
/// delete them.
///
/// The lock is on the folder, so that no file is left behind. One that cannot be had within 5 s, on a file system
/// without locks or from a stopped process, is done without.
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
