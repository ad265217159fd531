import BlobHTTP
import Blobs
import Platform

/// A response that no request has asked for: some servers and proxies respond to a request twice.
enum UnaskedResponse {
  /// Enough bytes for `isOne`.
  static let longest = 16

  /// Whether bytes that came after the last response begin one. A server may end the last response with an extra line
  /// end, and may announce by 408 that it closes an idle connection. RFC 9112 §2.2, RFC 9110 §15.5.9. Some servers send
  /// content after a response to HEAD, which cannot be taken for a response.
  static func isOne(_ bytes: some Sequence<UInt8>) -> Bool {
    let bytes = Array(bytes.prefix(longest).drop { $0 == 13 || $0 == 10 })
    let saysTimeout = bytes.dropFirst(9).starts(with: "408".utf8)
    return !bytes.isEmpty && zip(bytes, "HTTP/1.".utf8).allSatisfy { $0 == $1 } && !saysTimeout
  }
}

extension ConnectionWorker {
  /// Throws if `head` is a success that was sent before the server had received the whole request. A segment with a
  /// response acknowledges the request that it responds to, so the response belongs to an earlier request, or the server
  /// does not have the body. A connection through a proxy acknowledges what the proxy has received.
  func checkHasArrived(_ talk: HTTP1Exchange, _ head: HTTPHead, _ transfer: Transfer) throws(TransportError) {
    guard transfer.job.body != nil, 200..<300 ~= head.status, talk.wire.hasUnacknowledgedRequest else { return }
    noteEarlySuccess(talk, transfer)
    throw TransportError(
      .broken,
      "\(transfer.job.name): \(transfer.server) answered \(head.status) after \(transfer.body.sent) bytes were sent, before the "
        + "last of them had arrived there")
  }

  /// Whether a response that has passed `checkHasArrived` is the one to this request, with all its bytes, although the rest
  /// of it does not come. Over a connection that was used before, it may be a second response to an earlier request, and a
  /// connection that breaks does not show that.
  func isAnswer(_ head: HTTPHead, _ talk: HTTP1Exchange) -> Bool {
    talk.isFirst && (200..<300 ~= head.status || !talk.wire.hasUnacknowledgedRequest)
  }

  /// Called when a success came before the whole request was sent, or had arrived. If the connection was used before, the
  /// response may belong to an earlier request.
  func noteEarlySuccess(_ talk: HTTP1Exchange, _ transfer: Transfer) {
    if !talk.isFirst { pool.habits.noteMixedResponses(transfer.request.url) }
  }

  /// Throws if the response may belong to another request: the connection was used before, and the server has meanwhile
  /// responded to a request twice.
  func checkIsOwn(_ connection: IdleConnection, _ transfer: Transfer) throws(TransportError) {
    guard connection.exchanges > 0, pool.habits.mixesResponses(transfer.request.url) else { return }
    throw TransportError(
      .broken,
      "\(transfer.job.name): \(transfer.server) answers requests twice, so it is not known which one it has answered, "
        + transfer.reached)
  }

  /// Examines the stored connection, if a request was sent over it. false: it cannot be used again and was closed.
  @discardableResult func checkIdle() -> Bool {
    guard let kept else { return false }
    // A connection that was made ahead has no response to wait for.
    if kept.exchanges == 0 { return true }
    kept.idleTime = SuspendingClock.now - kept.since
    if note(kept.wire.idleState, of: kept) { return true }
    self.kept = nil
    kept.wire.close()
    return false
  }

  /// Reports what the server has done since the last exchange of `connection`. Returns whether it has done nothing.
  func note(_ state: IdleState, of connection: IdleConnection) -> Bool {
    switch state {
    case .quiet: return true
    case .closed: break
    case .reset: noteLoss(of: connection)
    case .responded: pool.habits.noteMixedResponses(connection.url)
    }
    return false
  }

  /// Called when a connection was lost without a response to its last request: the response to the request before it
  /// may have been that to an earlier one, and it may have been lost too. An idle connection that is merely closed has
  /// usually been idle for longer.
  func noteLoss(of connection: IdleConnection) {
    guard let upload = connection.lastUpload, connection.idleTime < .seconds(2) else { return }
    pool.habits.doubt(upload, at: connection.url)
  }
}
