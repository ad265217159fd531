import BlobHTTP
import Synchronization

/// Origins that have closed an idle connection just as a request was sent over it. Any thread may use it.
final class IdleClosers: Sendable {
  private let origins = Mutex<Set<String>>([])
  private let isUsed = Atomic(false)

  /// Reports that a server has closed an idle connection just as a request was sent over it. From now on, requests to
  /// this origin that must not be sent twice get new connections: otherwise each retry could end in the same race.
  ///
  /// Other requests are simply sent again over a new connection. These cannot be: it is unknown whether the server has
  /// read such a request, so a second one could do its work twice. New connections for all such requests, at every
  /// server, would cost a round trip each, and two with TLS.
  func note(_ url: HTTPURL) {
    isUsed.store(true, ordering: .relaxed)
    origins.withLock { if $0.count < 1024 { $0.insert(url.origin) } }
  }

  func contain(_ url: HTTPURL) -> Bool {
    isUsed.load(ordering: .relaxed) && origins.withLock { $0.contains(url.origin) }
  }
}
