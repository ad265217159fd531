import BlobHTTP
import Blobs
import Platform

/// Waits for the connection of an exchange, and for the alarm that ends it.
struct SocketWaiter {
  let pool: ConnectionPool
  let inbox: WorkerInbox

  /// The events that `poll` reports; 0 if the time has passed or the alarm was raised, and earlier if the server lets
  /// the request wait.
  func wait(for wire: Connection, _ events: Int32, atMost milliseconds: Int32, _ transfer: Transfer) -> Int32 {
    let milliseconds = min(milliseconds, StalledServers.shortest)
    let found = pool.whileWaiting { poll(wire, events, atMost: milliseconds) }
    if found == nil { noteStall(transfer) }
    return found ?? 0
  }

  /// Waits until the rate limit lets bytes of the body pass, `milliseconds` at most, and for what the server sends. Neither
  /// the network nor the server makes the request wait meanwhile.
  func waitForRate(_ wire: Connection, _ transfer: Transfer, wanted: Int, atMost milliseconds: Int32) -> Int32 {
    let left = transfer.job.grant?.timeLeft(upTo: wanted).pollTime ?? 0
    return poll(wire, POLLIN, atMost: min(left, milliseconds)) ?? 0
  }

  /// nil: the time has passed. 0: the alarm was raised, or a signal came.
  private func poll(_ wire: Connection, _ events: Int32, atMost milliseconds: Int32) -> Int32? {
    let inbox = pollfd(fd: inbox.alarm.descriptor, events: Int16(POLLIN), revents: 0)
    var waited = (pollfd(fd: wire.socket, events: Int16(events), revents: 0), inbox)
    let count = withUnsafeMutableBytes(of: &waited) { bytes in
      Platform.poll(bytes.assumingMemoryBound(to: pollfd.self).baseAddress, 2, milliseconds)
    }
    if count <= 0 { return count == 0 ? nil : 0 }
    if waited.1.revents != 0 { self.inbox.alarm.lower() }
    if waited.0.revents != 0 { pool.noteActivity() }
    return Int32(waited.0.revents)
  }

  /// Called when the exchange, or the connection for it, has waited for `StalledServers.shortest`.
  func noteStall(_ transfer: Transfer) {
    let url = transfer.job.request.url
    pool.closeIdle(at: url)
    pool.stalls.note(url)
  }
}
