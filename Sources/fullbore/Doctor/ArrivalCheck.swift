import BlobClient
import BlobHTTP

/// Whether a larger body arrives whole: a limit that counts bytes as they arrive does not show by `Content-Length`.
struct ArrivalCheck: Sendable {
  let target: DoctorTarget
  let options: SocketTransport.Options
  /// Bytes to send at most, twice.
  let size: Int64

  /// Enough for the usual limits, and little for most links.
  static let usual: Int64 = 16 << 20
  private static let limit = Duration.seconds(20)

  /// - `request`: makes the request anew. nil: it cannot be sent.
  /// - `offset`: asks the server how many bytes it has; nil: it cannot say, or does not answer.
  func run(_ request: () async -> HTTPRequest?, offset: () async -> Int64?) async {
    var ends: [(outcome: PausedRequest.Outcome, arrived: Int64?)] = []
    for _ in 0..<2 {
      if Task.isCancelled { return }
      let before = await offset()
      guard let request = await request() else { return }
      let sent = PausedRequest(request: request, length: size, first: size, pause: .zero, limit: Self.limit)
      let outcome = await sent.send(options)
      if outcome.response?.isSuccess == true {
        // A failure that does not repeat is none of a limit.
        return target.report.fine("body-limit", "a body of \(Quantity.text(bytes: size)) arrives whole")
      }
      if case .unanswered = outcome.end {
        return target.report.note(
          "body-limit",
          "a body of \(Quantity.text(bytes: size)) did not arrive within \(Self.limit), so a limit that counts bytes as they "
            + "arrive was not looked for")
      }
      let after = before == nil ? nil : await offset()
      ends.append(
        (outcome, after.flatMap { after in before.map { after.subtractingReportingOverflow($0).partialValue } }))
    }
    tell(ends)
  }

  private func tell(_ ends: [(outcome: PausedRequest.Outcome, arrived: Int64?)]) {
    let outcome = ends[0].outcome
    let end =
      outcome.response.map { "is answered \($0.status)" } ?? "loses its connection"
    let program = outcome.response.flatMap { ServerProgram(of: $0) }
    var limit = ""
    if let arrived = ends[0].arrived, arrived > 0, arrived == ends[1].arrived {
      limit =
        ", and the server has \(Quantity.text(bytes: arrived)) of it (\(Quantity.grouped(arrived)) bytes) each time"
    }
    target.report.found(
      Finding(
        kind: .bodyLimit,
        what: "a body of \(Quantity.text(bytes: size)) \(end), twice in a row\(limit); smaller ones pass",
        consequence: "Requests end in the middle. What can be resumed goes on in small steps; everything else fails.",
        mends: Mend.bodyLimit), by: program)
  }
}
