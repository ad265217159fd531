import BlobHTTP
import Blobs

extension ConnectionWorker {
  /// Maximum number of bytes of a response's content that are collected in memory.
  private static let mostContent = 1 << 20

  /// Processes one line of a header section, or a trailer. false: the exchange is over, and `transfer.failure` says
  /// why. The bytes sent so far must have been reported before.
  func take(line: UnsafeRawBufferPointer) -> Bool {
    let transfer = transfer!
    transfer.response.received += Int64(line.count)
    let failure: TransportError?
    switch transfer.response.head.take(line) {
    case .nothing: return true
    case .interim(let head):
      transfer.response.interimHeads += 1
      if transfer.job.isStopping {
        transfer.job.exchange.interim(head)
        return true
      }
      failure = outside(transfer) { () throws(BlobError) in transfer.job.exchange.interim(head) }
    case .final(let head):
      failure = head.earlySuccess(
        to: transfer.job.name, from: transfer.server, sent: transfer.body.handed, of: transfer.body.length,
        isWhole: transfer.body.isSent)
    case .malformed: failure = notHTTP(transfer)
    }
    if failure == nil { return true }
    transfer.failure = failure
    return false
  }

  func take(content: UnsafeRawBufferPointer) -> Bool {
    let transfer = transfer!
    transfer.response.received += Int64(content.count)
    if transfer.streamsContent, let received = transfer.job.exchange.received, let head = transfer.response.head.final {
      transfer.failure = outside(transfer) { () throws(BlobError) in
        if !transfer.response.hasBegun { try transfer.job.exchange.began?(head) }
        transfer.response.hasBegun = true
        try received(content)
      }
      return transfer.failure == nil
    }
    if transfer.response.content.count + content.count > Self.mostContent {
      transfer.failure = TransportError(
        .longResponse,
        "\(transfer.job.name): answered \(transfer.response.head.final?.status ?? 0) with more than \(Self.mostContent) bytes, "
          + "which are not read")
      return false
    }
    transfer.response.content.append(contentsOf: content)
    return true
  }

  func notHTTP(_ transfer: Transfer) -> TransportError {
    TransportError(
      .badResponse,
      "\(transfer.job.name): what \(transfer.server) answers is not HTTP/1.1, after \(transfer.body.sent) bytes were sent"
    )
  }

  /// The header or trailer section of the response has more than `most` bytes.
  func tooLong(_ transfer: Transfer, _ most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(transfer.job.name): \(section(transfer)) is too long: it has more than \(most) bytes")
  }

  /// A line in the header or trailer section of the response has more than `most` bytes.
  func tooLong(_ transfer: Transfer, line most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(transfer.job.name): \(section(transfer)) is too long: a line of it has more than \(most) bytes")
  }

  private func section(_ transfer: Transfer) -> String {
    "the \(transfer.response.head.final == nil ? "header" : "trailer") section of what \(transfer.server) answers"
  }
}

extension Transfer {
  /// `host:port`, for messages.
  var server: String { "\(job.request.url.host):\(job.request.url.port)" }

  /// The progress of the exchange, for messages. For a request without a body, the received bytes matter.
  var reached: String {
    job.body == nil && response.received > 0
      ? "after \(response.received) bytes had come" : "after \(body.sent) bytes were sent"
  }
}
