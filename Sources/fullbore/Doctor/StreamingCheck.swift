import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// Whether the first bytes of a request reach the server before the last have left, and whether a body may pause.
struct StreamingCheck: Sendable {
  let target: DoctorTarget
  let options: SocketTransport.Options
  /// The largest body that passes; nil: no limit was found.
  var largestBody: Int64?

  private static let first: Int64 = 128 << 10
  private static let limit = Duration.seconds(15)

  private var length: Int64 { min(1 << 20, largestBody ?? .max) }

  /// Nothing can be measured with smaller bodies: they leave with the head.
  private var isTooSmall: Bool { length <= Self.first }

  /// Sends a request that the server refuses by its head. Returns whether the refusal came before the rest of the body
  /// was sent; nil: that is not known.
  func refusesEarly(_ request: HTTPRequest, isFromServer: (HTTPResponse) -> Bool) async -> Bool? {
    if isTooSmall { return nil }
    let paused = PausedRequest(
      request: request, length: length, first: Self.first, pause: .seconds(1), limit: Self.limit)
    let outcome = await paused.send(options)
    guard let response = outcome.response, isFromServer(response) else { return nil }
    return outcome.sent <= Self.first
  }

  /// Sends a part of an upload, pauses, and asks over another connection how many bytes the server has. Returns whether
  /// it has some; nil: that is not known. `interim`: whether an interim response came meanwhile.
  func arrivesEarly(
    _ dialect: UploadDialect, at url: HTTPURL, over transport: any Transport
  ) async -> (arrives: Bool?, refusal: HTTPResponse?, interim: [HTTPHead]) {
    if isTooSmall { return (nil, nil, []) }
    let append = dialect.append(to: url, at: 0)
    let paused = PausedRequest(
      request: target.request(append.method, url, append.headers), length: length, first: Self.first,
      pause: .seconds(60), limit: .seconds(60))
    let task = Task { [options] in await paused.send(options) }
    var arrives: Bool?
    for wait in [300, 700, 2000, 4000] {
      // A cancelled examination ends with what it has.
      guard (try? await Task.sleep(for: .milliseconds(wait))) != nil else { break }
      let question = dialect.request("HEAD", url)
      let request = target.request("HEAD", url, question.headers)
      guard let offset = try? await target.answer(to: request, over: transport).headers.bytes("Upload-Offset") else {
        continue
      }
      arrives = offset > 0
      if offset > 0 { break }
    }
    task.cancel()
    let outcome = await task.value
    // A request that was answered, or whose connection broke, was not waiting in a proxy.
    if arrives == false, case .unanswered = outcome.end {} else if arrives == false { arrives = nil }
    return (arrives, outcome.response, outcome.interim)
  }

  func tellBuffering() {
    target.report.found(
      Finding(
        kind: .buffering,
        what: "something before the server holds each request back until it has all of it: the server has no byte of a "
          + "body that pauses (unless the server itself stores nothing before a request ends)",
        consequence: "An upload that breaks loses everything since its request began, progress runs ahead of what is "
          + "stored, refusals come after everything was sent, and the disk of the proxy takes each body first.",
        mends: Mend.buffering))
  }

  /// A late refusal is no proof: Apache, among others, reads a body to its end before it refuses.
  func noteLateRefusal() {
    target.report.note(
      "buffering",
      "the server refused a request only once it had the whole body. That is a guess at best: something before it may hold "
        + "requests back (nginx: proxy_request_buffering), or it reads bodies to their end before it refuses them")
  }

  /// Sends a body that pauses for `pause`. Returns whether the request was carried out; nil: it fails without a pause too,
  /// or was not sent.
  func survives(_ pause: Duration, _ request: () async -> HTTPRequest?) async -> Bool? {
    if isTooSmall { return nil }
    guard let first = await request() else { return nil }
    let size = min(length, 512 << 10)
    let paused = PausedRequest(
      request: first, length: size, first: Self.first, pause: pause, limit: pause + .seconds(30))
    let outcome = await paused.send(options)
    if let response = outcome.response, response.isSuccess {
      target.report.fine("body-timeout", "a body may pause for \(Quantity.text(pause))")
      return true
    }
    // Whether it was the pause.
    guard !Task.isCancelled, let second = await request() else { return nil }
    let plain = PausedRequest(request: second, length: size, first: Self.first, pause: .zero, limit: .seconds(30))
    let plainly = await plain.send(options)
    guard let response = plainly.response, response.isSuccess else {
      tellFailure(second, size, plainly)
      return nil
    }
    tellTimeout(pause, outcome)
    return false
  }

  private func tellFailure(_ request: HTTPRequest, _ size: Int64, _ outcome: PausedRequest.Outcome) {
    if Task.isCancelled { return }
    target.report.found(
      Finding(
        kind: .upload,
        what:
          "\(request.method) with a body of \(Quantity.text(bytes: size)) \(Self.words(outcome)), with and without a pause",
        consequence: "A push fails in the same way.",
        mends: outcome.response?.status == 413 ? Mend.bodyLimit : []))
  }

  private static func words(_ outcome: PausedRequest.Outcome) -> String {
    switch outcome.end {
    case .answered(let response): "was answered \(response.status)"
    case .failed: "lost its connection"
    case .unanswered: "was not answered"
    }
  }

  private func tellTimeout(_ pause: Duration, _ outcome: PausedRequest.Outcome) {
    target.report.found(
      Finding(
        kind: .bodyTimeout,
        what:
          "a request whose body paused for \(Quantity.text(pause)) \(Self.words(outcome)); without the pause it passes",
        consequence:
          "Uploads break whenever the source or the network pauses, as a phone's does, and begin that request "
          + "again.",
        mends: Mend.bodyTimeout), by: outcome.response.flatMap { ServerProgram(of: $0) })
  }
}
