import Platform
import Synchronization

/// Ends connections whose client takes too long: libmicrohttpd's own limit begins anew with every byte. It also ends those
/// whose file has become shorter than its answer promises: libmicrohttpd would wait for the bytes until that limit.
///
/// A head must be complete in time, and while a request is under way its connection must move some bytes in every
/// stretch of time, in either direction. What waits for us is never ended.
final class ConnectionWatch: Sendable {
  struct Limits: Sendable {
    /// How long a connection may be silent, and the stretch that bytes are counted over.
    var idle: Duration
    /// For a head; the time that a connection was silent between two requests comes on top.
    var head: Duration
    /// 0: as slow as it likes.
    var bytesPerSecond: Int
  }
  let limits: Limits
  /// Of the sockets that libmicrohttpd reads.
  let ends: StreamEnds
  private let watched = Mutex<[ObjectIdentifier: WatchedConnection]>([:])

  init(_ limits: Limits) throws(ServerError) {
    self.limits = limits
    ends = try StreamEnds()
  }

  /// How often `endStuck` should be called.
  var interval: Duration { min(.seconds(1), max(.milliseconds(50), min(limits.idle, limits.head) / 4)) }

  /// `socket` stays open until `closed`. `tellsEnd`: libmicrohttpd reads it, and must be told of its end.
  func opened(_ socket: Int32, tellsEnd: Bool) -> WatchedConnection {
    let connection = WatchedConnection(
      socket, end: tellsEnd ? ends.watch(socket) : nil, headWithin: limits.head)
    watched.withLock { $0[ObjectIdentifier(connection)] = connection }
    return connection
  }

  func closed(_ connection: WatchedConnection) {
    watched.withLock { $0[ObjectIdentifier(connection)] = nil }
    detached(connection)
  }

  /// libmicrohttpd does not read the socket any more.
  func detached(_ connection: WatchedConnection) {
    if let end = connection.end { ends.forget(end) }
  }

  /// Shuts the sockets of those that are too slow, or cannot go on; libmicrohttpd sees them end.
  func endStuck() {
    let now = ContinuousClock.now
    // Under the lock: no socket is closed meanwhile, and its number given to another.
    watched.withLock { watched in
      for connection in watched.values where connection.isTooSlow(now, limits) || connection.lacksBytes {
        connection.shut()
      }
    }
  }
}

/// What one connection is at. Any thread may call.
final class WatchedConnection: Sendable {
  private enum Phase {
    /// No head yet, or not all of one.
    case head(until: ContinuousClock.Instant)
    /// A request or its answer is on its way. What had moved when the stretch began.
    case busy(since: ContinuousClock.Instant, moved: Int64)
    /// For a worker of ours.
    case waiting
  }
  private let socket: Int32
  /// Its number in `StreamEnds`.
  fileprivate let end: UInt64?
  private let phase: Mutex<Phase>
  /// The file that the answer sends, and where its bytes end in it.
  private let answer = Mutex<(file: Descriptor, end: Int64)?>(nil)

  fileprivate init(_ socket: Int32, end: UInt64?, headWithin limit: Duration) {
    self.socket = socket
    self.end = end
    phase = Mutex(.head(until: .now + limit))
  }

  /// A head is complete, or waiting has ended.
  func goOn() { phase.withLock { $0 = .busy(since: .now, moved: moved) } }
  func waits() { phase.withLock { $0 = .waiting } }
  /// The answer consists of the bytes of a file, up to `end`.
  func sends(_ file: Descriptor, upTo end: Int64) { answer.withLock { $0 = (file, end) } }
  /// The answer is sent.
  func isDone(_ limits: ConnectionWatch.Limits) {
    answer.withLock { $0 = nil }
    phase.withLock { $0 = .head(until: .now + limits.idle + limits.head) }
  }

  fileprivate func isTooSlow(_ now: ContinuousClock.Instant, _ limits: ConnectionWatch.Limits) -> Bool {
    phase.withLock { phase in
      switch phase {
      case .head(let until): return now > until
      case .waiting: return false
      case .busy(let since, let before):
        if now - since < limits.idle { return false }
        let moved = moved
        let wanted = Int64(limits.bytesPerSecond) * (now - since).components.seconds
        phase = .busy(since: now, moved: moved)
        return moved >= 0 && moved - before < wanted
      }
    }
  }

  /// The file has been shortened since its length was told to the client.
  fileprivate var lacksBytes: Bool {
    answer.withLock { answer in
      guard let answer else { return false }
      var status = stat()
      return fstat(answer.file.number, &status) == 0 && Int64(status.st_size) < answer.end
    }
  }

  fileprivate func shut() { shutdown(socket, shutBoth) }

  /// Bytes that the client sent and those it acknowledged; negative where the system does not tell.
  private var moved: Int64 {
    #if os(Linux)
      fb_tcp_moved(socket)
    #else
      -1
    #endif
  }
}
