import BlobHTTP
import Synchronization

/// The servers that were seen to close idle connections as requests arrive, or to answer a request twice. A worker asks
/// before it reuses a connection. Any thread may use it.
final class ServerHabits: Sendable {
  private let closing = Origins()
  private let mixing = Origins()
  /// Uploads by origin.
  private let doubted = Mutex<[String: Set<Int64>]>([:])
  /// Whether any server was seen to mix responses, or any success was doubted.
  let hasDoubts = Atomic(false)

  /// Reports that a server has closed an idle connection just as a request was sent over it. From now on, requests to
  /// this origin that must not be sent twice get new connections: otherwise each retry could end in the same race.
  ///
  /// Other requests are simply sent again over a new connection. These cannot be: it is unknown whether the server has
  /// read such a request, so a second one could do its work twice. New connections for all such requests, at every
  /// server, would cost a round trip each, and two with TLS.
  func noteIdleClose(_ url: HTTPURL) { closing.insert(url) }

  func closesIdle(_ url: HTTPURL) -> Bool { closing.contains(url) }

  /// Reports that a server, or a proxy before it, has sent a response that no request has asked for. From now on, each
  /// connection to this origin carries one request: the next such response could come just after another request was
  /// sent, and would be taken for its response.
  func noteMixedResponses(_ url: HTTPURL) {
    mixing.insert(url)
    hasDoubts.store(true, ordering: .relaxed)
  }

  func mixesResponses(_ url: HTTPURL) -> Bool { mixing.contains(url) }

  /// Reports that a success of `upload` at the server of `url` may have been the response to another request.
  func doubt(_ upload: Int64, at url: HTTPURL) {
    doubted.withLock { doubted in
      if doubted.count >= Self.most, doubted[url.origin] == nil { return }
      if doubted[url.origin, default: []].count < Self.most { doubted[url.origin, default: []].insert(upload) }
    }
    hasDoubts.store(true, ordering: .relaxed)
  }

  /// Removes and returns the doubted uploads at the server of `url`.
  func takeDoubted(at url: HTTPURL) -> [Int64] {
    doubted.withLock { $0.removeValue(forKey: url.origin).map(Array.init) ?? [] }
  }

  private static let most = 1024
}

/// A set of origins that is empty for most pushes.
private final class Origins: Sendable {
  private let origins = Mutex<Set<String>>([])
  private let isUsed = Atomic(false)

  func insert(_ url: HTTPURL) {
    isUsed.store(true, ordering: .relaxed)
    origins.withLock { if $0.count < 1024 { $0.insert(url.origin) } }
  }

  func contains(_ url: HTTPURL) -> Bool {
    isUsed.load(ordering: .relaxed) && origins.withLock { $0.contains(url.origin) }
  }
}
