import Blobs
import Platform

/// The number of connections that the limit of open files allows. Connections above it wait in the listening socket's
/// queue. Without such a limit the files would be used up in the middle of requests.
struct ConnectionLimit {
  /// Files of a connection: its socket, and the file that is received or sent.
  private static let perConnection = 2
  /// Files that a worker opens besides, while it publishes an upload: folders, the file with the same name, the record.
  private static let perWorker = 4
  /// Files of the event loops, of the periodic tasks, and those that the program opens after its server.
  private static let others = 18

  /// The number of files that the server needs for so many connections.
  static func files(for connections: Int, workers: Int) -> Int {
    others + connections * perConnection + min(connections, workers) * perWorker
  }

  /// The maximum number of connections if so many files can still be opened; 0: not even one.
  static func connections(opening files: Int, workers: Int) -> Int {
    let few = (files - others) / (perConnection + perWorker)
    return few < workers ? max(0, few) : (files - others - workers * perWorker) / perConnection
  }

  /// Throws if the process may not open enough files for one connection. `most`: the process's limit of open files.
  static func connections(within most: Int, workers: Int) throws(ServerError) -> Int {
    let count = connections(opening: most - openFiles(), workers: workers)
    if count > 0 { return count }
    throw ServerError(
      "only \(most) files may be open at once, which is too few for a server. Allow more open files (ulimit -n 256)")
  }

  /// The number of files that are open now.
  private static func openFiles() -> Int {
    // Without /proc, the standard streams and the server's own files are assumed.
    guard let listing = opendir("/dev/fd") else { return 16 }
    defer { closedir(listing) }
    var count = 0
    while readdir(listing) != nil { count += 1 }
    return count - 3  // "..", "." and the listing itself
  }
}
