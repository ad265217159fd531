import BlobHTTP
import Blobs

extension Transfer {
  /// Maximum number of bytes of a response's content that are collected in memory.
  private static let mostContent = 1 << 20

  /// Processes one line of a header section, or a trailer. false: the exchange is over, and `failure` says
  /// why. The bytes sent so far must have been reported before.
  func take(line: UnsafeRawBufferPointer) -> Bool {
    response.received += Int64(line.count)
    let problem: TransportError?
    switch response.head.take(line) {
    case .nothing: return true
    case .interim(let head):
      response.interimHeads += 1
      if job.isStopping {
        job.exchange.interim(head)
        return true
      }
      problem = outside { () throws(BlobError) in job.exchange.interim(head) }
    case .final(let head):
      problem = head.earlySuccess(
        to: job.name, from: server, sent: body.handed, of: body.length,
        isWhole: body.isSent)
    case .malformed: problem = notHTTP()
    }
    if problem == nil { return true }
    failure = problem
    return false
  }

  func take(content: UnsafeRawBufferPointer) -> Bool {
    response.received += Int64(content.count)
    if streamsContent, let received = job.exchange.received, let head = response.head.final {
      failure = outside { () throws(BlobError) in
        if !response.hasBegun { try job.exchange.began?(head) }
        response.hasBegun = true
        try limitRate(of: content.count)
        try received(content)
      }
      return failure == nil
    }
    if response.content.count + content.count > Self.mostContent {
      failure = TransportError(
        .longResponse,
        "\(job.name): answered \(response.head.final?.status ?? 0) with more than \(Self.mostContent) bytes, "
          + "which are not read")
      return false
    }
    response.content.append(contentsOf: content)
    return true
  }

  /// Waits until the rate limit lets received content pass. What the server sends meanwhile fills the buffers of the
  /// connection, and then waits there.
  private func limitRate(of count: Int) throws(BlobError) {
    guard let limiter = job.pool.options.limiter else { return }
    var left = count
    while left > 0 { left -= try limiter.take(upTo: left, job.cancellation) }
  }

  func notHTTP() -> TransportError {
    TransportError(
      .badResponse,
      "\(job.name): what \(server) answers is not HTTP/1.1, after \(body.sent) bytes were sent"
    )
  }

  /// The header or trailer section of the response has more than `most` bytes.
  func tooLong(_ most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(job.name): \(section) is too long: it has more than \(most) bytes")
  }

  /// A line in the header or trailer section of the response has more than `most` bytes.
  func tooLong(line most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(job.name): \(section) is too long: a line of it has more than \(most) bytes")
  }

  private var section: String {
    "the \(response.head.final == nil ? "header" : "trailer") section of what \(server) answers"
  }
}
