import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// Sends the requests of a store to its bucket, and knows from their outcomes whether files can be stored there.
///
/// While no request has shown it for some seconds, a probe does. One request that fails is no problem yet: it is tried again.
final class BucketHealth: Transport {
  private struct State {
    /// The failures since the last success, and the reason of the last one.
    var failures = 0
    var reason = ""
    /// When a request has last shown whether files can be stored.
    var shown = ContinuousClock.now
    /// When a file was last refused. A probe stores nothing, so it is no proof that there is room for files again.
    var refused: ContinuousClock.Instant?
    var probe: ContinuousClock.Instant?
  }
  private let state = Mutex(State())
  private let transport: any Transport
  /// Whether files are to be stored. If not, they are only read.
  private let stores: Bool
  private let rest: Duration
  /// The time between two probes after a failure.
  private var shortRest: Duration { min(rest, .seconds(2)) }
  /// A probe that takes longer waits for a bucket that does not respond.
  private static let patience = Duration.seconds(10)
  /// How long a refused file counts for more than a probe.
  private static let memory = Duration.seconds(30)

  /// `rest`: the time without a request after which a probe is due.
  init(_ transport: any Transport, stores: Bool, rest: Duration) {
    (self.transport, self.stores, self.rest) = (transport, stores, rest)
  }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let showsAll = !stores || ["PUT", "POST"].contains(request.method)
    do throws(TransportError) {
      let response = try await transport.send(request, body: body, on)
      let reason = S3Multipart.problem(request, response)
      note(reason, showsAll: showsAll, isRefusal: !S3Multipart.isProbe(request))
      return response
    } catch {
      // The client has sent less than it had announced, or has gone.
      if ![.source, .cancelled].contains(error.code) {
        note("the bucket cannot be reached (\(error.code))", showsAll: showsAll, isRefusal: false)
      }
      throw error
    }
  }

  /// `reason`: why the request has failed; nil: it shows no problem. `showsAll`: its success shows that files can be stored.
  /// `isRefusal`: it has brought bytes of a file.
  private func note(_ reason: String?, showsAll: Bool, isRefusal: Bool) {
    let now = ContinuousClock.now
    state.withLock { state in
      if let reason {
        state.failures = min(state.failures + 1, 2)
        (state.reason, state.shown) = (reason, now)
        if isRefusal, showsAll, stores { state.refused = now }
      } else if showsAll {
        state.shown = now
        // A success of a file ends the doubts, and that of a probe only those that no file has raised.
        if !isRefusal, let refused = state.refused, now - refused < Self.memory { return }
        (state.failures, state.refused) = (0, nil)
      }
    }
  }

  /// Why files cannot be stored, or read if none are stored; nil: they can. Has no name and no secret in it. Does not block.
  var problem: String? {
    let now = ContinuousClock.now
    return state.withLock { state in
      if let began = state.probe, now - began >= Self.patience {
        return "the bucket has not answered for \((now - began).components.seconds) s"
      }
      return state.failures > 1 ? state.reason : nil
    }
  }

  /// Runs `probe` as a task if it is due. It ends by itself.
  func probeIfDue(_ probe: @escaping @Sendable () async -> Void) {
    let now = ContinuousClock.now
    let isDue = state.withLock { state in
      guard state.probe == nil, now - state.shown >= (state.failures > 0 ? shortRest : rest) else { return false }
      state.probe = now
      return true
    }
    if !isDue { return }
    // Unstructured, because the check of every second must not wait for the network.
    Task {
      await probe()
      state.withLock { $0.probe = nil }
    }
  }
}
