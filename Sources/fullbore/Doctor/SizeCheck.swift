import BlobClient
import BlobHTTP

/// Which sizes of bodies are refused with 413, as they are announced by `Content-Length`.
///
/// Each request announces a body, sends 1 KiB of it, and waits for the refusal. No body is ever sent whole, unless it is
/// shorter than 64 KiB.
struct SizeCheck: Sendable {
  let target: DoctorTarget
  /// A request that the server refuses or that ends before it is complete, so that nothing is stored.
  let request: HTTPRequest
  let options: SocketTransport.Options
  /// The largest size to announce.
  let largest: Int64

  private static let first: Int64 = 1 << 10
  /// A refusal by length comes at once.
  private static let wait = Duration.milliseconds(1500)
  /// Bounds for the whole check.
  private static let mostRequests = 60
  private static let mostTime = Duration.seconds(60)

  private enum Verdict {
    case refused(HTTPResponse)
    case passed(isAnswered: Bool)
    case failed(TransportError)
  }

  /// Returns the limit; nil: there is none up to `largest`, or it could not be measured.
  func run() async -> SizeSearch.Limit? {
    // Some proxies compare only the lower 32 bits of larger sizes.
    search: for size in largest > Int64(Int32.max) ? [largest, Int64(Int32.max)] : [largest] {
      switch await verdict(size) {
      case .passed(isAnswered: true): continue
      // The server does not respond before the end of a body.
      case .passed(isAnswered: false): break search
      case .failed(let error):
        target.report.note("body-limit", "not measured: \(error.message)")
        return nil
      case .refused(let response): return await bisect(below: size, response)
      }
    }
    target.report.fine("body-limit", "a body of \(Quantity.text(bytes: largest)) is not refused for its length")
    return nil
  }

  private func bisect(below size: Int64, _ response: HTTPResponse) async -> SizeSearch.Limit {
    let end = ContinuousClock.now + Self.mostTime
    var (search, requests) = (SizeSearch(refused: size), 0)
    while let size = search.next(), requests < Self.mostRequests, .now < end, !Task.isCancelled {
      requests += 1
      switch await verdict(size) {
      case .refused: search.limit.refused = size
      case .passed: search.limit.passes = size
      case .failed(let error):
        target.report.note("body-limit", "not measured to the byte: \(error.message)")
        requests = Self.mostRequests
      }
    }
    tell(search.limit, response)
    return search.limit
  }

  private func verdict(_ size: Int64) async -> Verdict {
    let first = size < PausedRequest.shortest ? size : Self.first
    let paused = PausedRequest(
      request: request, length: size, first: first, pause: Self.wait * 2, limit: Self.wait)
    switch await paused.send(options).end {
    case .answered(let response) where response.status == 413:
      target.report.noteProgram(ServerProgram(of: response))
      return .refused(response)
    case .answered: return .passed(isAnswered: true)
    case .unanswered: return .passed(isAnswered: false)
    case .failed(let error): return .failed(error)
    }
  }

  private func tell(_ limit: SizeSearch.Limit, _ response: HTTPResponse) {
    let program = ServerProgram(of: response)
    let (passes, refused) = (Self.text(limit.passes), Self.text(limit.refused))
    let size =
      limit.isExact
      ? "over \(passes)" : "of \(refused) (up to \(passes) passes)"
    let smallest: Int64 = 64 << 10
    let isPlain = request.method == "PUT"
    target.report.found(
      Finding(
        kind: .bodyLimit,
        what: "bodies \(size) are refused with 413\(program.map { " by \($0.rawValue)" } ?? "")",
        consequence: isPlain
          ? "No larger file can be sent: this protocol sends a file in one request."
          : limit.passes < smallest
            ? "No file can be sent: not even a part of \(Quantity.text(bytes: smallest)) passes."
            : "fullbore sends larger files in parts, with one request for each, which is slower; most other clients fail.",
        mends: Mend.bodyLimit),
      by: program)
  }

  private static func text(_ bytes: Int64) -> String {
    let short = Quantity.text(bytes: bytes)
    return bytes < 1024 ? short : "\(short) (\(Quantity.grouped(bytes)) bytes)"
  }
}
