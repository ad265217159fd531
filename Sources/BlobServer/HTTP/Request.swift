import BlobHTTP
import Synchronization

/// A request whose header section has arrived, as routes see it.
final class Request: Sendable {
  let head: RequestHead
  private weak let connection: Connection?
  private enum Visit: UInt8, AtomicRepresentable { case none, inProgress, ended }
  private let visit = Atomic(Visit.none)

  init(_ head: RequestHead, _ connection: Connection) {
    self.head = head
    self.connection = connection
  }

  var method: String { head.method }
  var target: [UInt8] { head.target }
  var headers: HTTPHeaders { head.headers }
  var isHTTP11: Bool { head.isHTTP11 }
  /// Length of the body in bytes; nil: it is known only at the end.
  var contentLength: Int64? { head.contentLength }
  var hasBody: Bool { contentLength != 0 }
  /// Whether the client waits for 100 (Continue) before it sends the body. RFC 9110 §10.1.1.
  var expectsLeave: Bool { isHTTP11 && headers["Expect"]?.isSameField("100-continue") == true }
  /// Whether the connection persists after this request. RFC 9112 §9.3.
  var keepsConnection: Bool { isHTTP11 && !headers.list("Connection").contains { $0.isSameField("close") } }

  /// Counts the request as a visit, unless it only asks what is there. Any thread may call.
  func beginVisit(_ counters: Counters) {
    if method == "HEAD" || method == "QUERY" { return }
    if visit.compareExchange(expected: .none, desired: .inProgress, ordering: .relaxed).exchanged {
      counters.visiting.add(1, ordering: .relaxed)
    }
  }

  /// `status`: of the response; nil: there was none.
  func endVisit(_ counters: Counters, status: Int?) {
    guard visit.exchange(.ended, ordering: .relaxed) == .inProgress else { return }
    counters.visiting.subtract(1, ordering: .relaxed)
    if let status, status < 300 { counters.visits.add(1) }
  }

  /// The client, as far as it is known.
  var sender: Sender { Sender(address: connection?.peerAddress, agent: headers["User-Agent"]) }

  /// Whether the client has closed the connection. Only the worker that processes the request calls this.
  var clientHasGone: Bool { connection?.clientHasGone(knowsInterim: isHTTP11) ?? true }

  /// Whether the client itself is connected, and asks for interim responses. `Connection` and the field that it names are
  /// for the next server only, so a proxy removes both. RFC 9110 §7.6.1.
  var asksForInterim: Bool {
    headers["Upload-Interim"] != nil && headers.list("Connection").contains { $0.isSameField("Upload-Interim") }
  }

  /// Whether the request comes from a reverse proxy that takes an interim response for the final one, as nginx (seen with
  /// 1.22) does if it passes bodies on unbuffered: the upload then stands still. By default nginx closes each of its
  /// connections, and `X-Real-IP` is its usual field for the client's address. It always removes `Connection`, and never
  /// a field that `Connection` names.
  private var isFromSimpleProxy: Bool {
    headers["X-Real-IP"] != nil || headers.list("Connection").contains { $0.isSameField("close") }
      || headers["Upload-Interim"] != nil && !asksForInterim
  }

  /// Sends an interim response before the final one. Returns false if `interim` is empty, or the client does not
  /// support interim responses, as with HTTP/1.0. RFC 9110 §15.2.
  func inform(_ interim: [UInt8]) -> Bool {
    guard isHTTP11, !isFromSimpleProxy, !interim.isEmpty, let connection else { return false }
    connection.sendInterim(interim)
    return true
  }

  /// Like `inform`, during the body, on the event thread. Also returns false if it cannot be sent at once.
  func inform(orSkip interim: [UInt8]) -> Bool { connection?.isQuiet == true && inform(interim) }
}
