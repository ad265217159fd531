import Platform
import Synchronization

/// Lets libmicrohttpd see that a client has closed its connection, or has stopped sending.
///
/// 0.9.75 reads once for each edge of epoll, and takes less than it asked for as all there is. An end that came together
/// with bytes is lost to it, and the connection would stay until its timeout. A shutdown of ours makes an edge again. That
/// may come too early: libmicrohttpd gets one edge for bytes and everything that has come behind them by then. So it is
/// repeated, less and less often, until the connection is closed.
final class StreamEnds: Sendable {
  private struct Stream {
    let socket: Int32
    /// When libmicrohttpd is told next; nil: the stream has not ended.
    var due: ContinuousClock.Instant?
    var pause = StreamEnds.shortestPause
  }
  private struct State {
    /// By the number that `watch` gave out. No socket is closed before `forget`.
    var streams: [UInt64: Stream] = [:]
    var latest: UInt64 = 0
    var nextDue: ContinuousClock.Instant?
  }
  private let state = Mutex(State())
  /// Can be read from when a stream has ended; then `tell` should be called.
  let epoll: Descriptor

  private static let shortestPause = Duration.milliseconds(2)
  private static let longestPause = Duration.seconds(2)

  init() throws(ServerError) {
    #if os(Linux)
      epoll = Descriptor(epoll_create1(Int32(EPOLL_CLOEXEC)))
    #else
      epoll = Descriptor(-1)  // libmicrohttpd has no epoll there
    #endif
  }

  /// Begins to wait for the end of what the socket brings. The socket must stay open until `forget` is called with the number
  /// that this returns.
  func watch(_ socket: Int32) -> UInt64 {
    state.withLock { state in
      state.latest += 1
      state.streams[state.latest] = Stream(socket: socket)
      #if os(Linux)
        var event = epoll_event(
          events: EPOLLRDHUP.rawValue | EPOLLONESHOT.rawValue, data: epoll_data_t(u64: state.latest))
        epoll_ctl(epoll.number, EPOLL_CTL_ADD, socket, &event)  // where it fails, the timeout ends the connection
      #endif
      return state.latest
    }
  }

  /// The socket is about to be closed, or to be read by others than libmicrohttpd. Without effect the second time.
  func forget(_ number: UInt64) {
    state.withLock { state in
      guard let stream = state.streams.removeValue(forKey: number) else { return }
      #if os(Linux)
        epoll_ctl(epoll.number, EPOLL_CTL_DEL, stream.socket, nil)
      #endif
    }
  }

  /// When `tell` should be called although the descriptor may have nothing to read.
  var nextDue: ContinuousClock.Instant? { state.withLock { $0.nextDue } }

  /// Tells libmicrohttpd of the streams that have ended, where it is time to.
  func tell(_ now: ContinuousClock.Instant) {
    let ended = takeEnded()
    // Under the lock: no socket is closed meanwhile, and its number given to another.
    state.withLock { state in
      for number in ended where state.streams[number] != nil { state.streams[number]?.due = now + Self.shortestPause }
      if let nextDue = state.nextDue, nextDue <= now {
        for (number, stream) in state.streams {
          guard let due = stream.due, due <= now else { continue }
          shutdown(stream.socket, shutReading)
          state.streams[number]?.due = now + stream.pause
          state.streams[number]?.pause = min(stream.pause * 2, Self.longestPause)
        }
        state.nextDue = state.streams.values.compactMap(\.due).min().map { max($0, now + Self.shortestPause) }
      } else if state.nextDue == nil, !ended.isEmpty {
        state.nextDue = now + Self.shortestPause
      }
    }
  }

  private func takeEnded() -> [UInt64] {
    #if os(Linux)
      var events = [epoll_event](repeating: epoll_event(), count: 256)
      let count = epoll_wait(epoll.number, &events, Int32(events.count), 0)
      return events.prefix(max(0, Int(count))).map(\.data.u64)
    #else
      return []
    #endif
  }
}

#if os(Linux)
  private let shutReading = Int32(SHUT_RD)
#else
  private let shutReading = SHUT_RD
#endif
