import BlobHTTP
import Blobs
import CCurl
import Platform

extension ConnectionWorker {
  /// Content is collected up to this.
  private static let mostContent = 1 << 20

  /// The answer, or the reason why there is none.
  func answer(_ transfer: Transfer, _ result: CURLcode) throws(TransportError) -> HTTPResponse {
    if let failure = transfer.failure { throw failure }
    // A refusal that came before the body was sent counts, however the connection ended after it.
    if result == CURLE_OK || (transfer.isBroken(result) && !transfer.isSent), let head = transfer.head.final {
      return HTTPResponse(head: head, body: transfer.content)
    }
    throw error(transfer, result)
  }

  /// One line of a head, or a trailer. false: the exchange is over, and `transfer.failure` says why. What was sent so far
  /// must have been reported.
  func take(line: UnsafeRawBufferPointer) -> Bool {
    let transfer = transfer!
    transfer.received += Int64(line.count)
    switch transfer.head.take(line) {
    case .nothing: break
    case .interim(let head):
      transfer.interimHeads += 1
      transfer.failure = outside(transfer) { () throws(BlobError) in transfer.job.exchange.interim(head) }
    case .final(let head):
      transfer.failure = head.earlySuccess(
        to: transfer.job.name, from: transfer.server, sent: transfer.body.count, of: transfer.length,
        isWhole: transfer.isSent)
    case .malformed: transfer.failure = notHTTP(transfer)
    }
    return transfer.failure == nil
  }

  /// As `take(line:)`, where libcurl has read it.
  fileprivate func take(lineOfLibcurl line: UnsafeRawBufferPointer) -> Bool {
    report(transfer!, by: handle!)
    return take(line: line)
  }

  func take(content: UnsafeRawBufferPointer) -> Bool {
    let transfer = transfer!
    transfer.received += Int64(content.count)
    if transfer.streamsContent, let received = transfer.job.exchange.received, let head = transfer.head.final {
      transfer.failure = outside(transfer) { () throws(BlobError) in
        if !transfer.hasBegun { try transfer.job.exchange.began?(head) }
        transfer.hasBegun = true
        try received(content)
      }
      return transfer.failure == nil
    }
    if transfer.content.count + content.count > Self.mostContent {
      transfer.failure = TransportError(
        .badResponse, "\(transfer.job.name): the answer is longer than \(Self.mostContent) bytes")
      return false
    }
    transfer.content.append(contentsOf: content)
    return true
  }

  /// libcurl closes a connection. When a server answers early and closes, sending may fail before libcurl has looked
  /// at the answer: take it from the socket while it is there.
  fileprivate func close(_ socket: curl_socket_t) {
    sockets.removeAll { $0 == socket }
    if socket == taken { return }
    defer { _ = closeDescriptor(socket) }
    guard let handle, handle.use != .connection, let transfer, transfer.failure == nil, transfer.attempts > 0,
      transfer.head.final == nil, transfer.received == 0, transfer.job.request.url.scheme == "http",
      !transfer.job.isCancelled
    else { return }
    report(transfer, by: handle)
    if transfer.isSent { return }
    var early = EarlyAnswer()
    early.read(socket)
    early.forEachLine { take(line: $0) && transfer.head.final == nil }
    transfer.content = early.content(for: transfer.head.final)
  }
}

extension Transfer {
  /// The connection ended in the middle.
  fileprivate func isBroken(_ result: CURLcode) -> Bool {
    [CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING].contains(result)
  }
}

func takeLine(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let line = UnsafeRawBufferPointer(start: buffer, count: size * count)
  return ConnectionWorker.from(context).take(lineOfLibcurl: line) ? line.count : 0
}

func takeContent(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let content = UnsafeRawBufferPointer(start: buffer, count: size * count)
  let lane = ConnectionWorker.from(context)
  lane.noteSurplus()
  return lane.take(content: content) ? content.count : -1
}

func closeSocket(_ context: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
  ConnectionWorker.from(context).close(socket)
  return 0
}

private func closeDescriptor(_ descriptor: Int32) -> Int32 { close(descriptor) }
