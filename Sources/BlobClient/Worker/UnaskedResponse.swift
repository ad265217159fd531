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

extension ServerHabits {
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

  /// Called when a success came before the whole request was sent, or had arrived. If the connection was used before, the
  /// response may belong to an earlier request.
  func noteEarlySuccess(_ talk: HTTP1Exchange, _ transfer: Transfer) {
    if !talk.isFirst { noteMixedResponses(transfer.request.url) }
  }

  /// Throws if the response may belong to another request: the connection was used before, and the server has meanwhile
  /// responded to a request twice.
  func checkIsOwn(_ connection: IdleConnection, _ transfer: Transfer) throws(TransportError) {
    guard connection.exchanges > 0, mixesResponses(transfer.request.url) else { return }
    throw TransportError(
      .broken,
      "\(transfer.job.name): \(transfer.server) answers requests twice, so it is not known which one it has answered, "
        + transfer.reached)
  }
}
