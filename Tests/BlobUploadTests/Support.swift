import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization

@testable import BlobUpload

/// A transport that responds by itself, and records the requests.
final class Script: Transport {
  typealias Answer = @Sendable (Int, HTTPRequest) throws(TransportError) -> HTTPResponse

  private let state = Mutex<[HTTPRequest]>([])
  private let answer: Answer

  /// `answer` is called with the number of the request, counted from 0. Bodies count as sent if it returns a response
  /// or the connection breaks, and are read only if their length is unknown.
  init(_ answer: @escaping Answer) { self.answer = answer }

  /// Returns the responses in order, and the last one for all further requests.
  convenience init(_ answers: HTTPResponse...) {
    self.init { number, _ throws(TransportError) in answers[min(number, answers.count - 1)] }
  }

  var requests: [HTTPRequest] { state.withLock { $0 } }
  /// `POST`, `HEAD`, …
  var methods: [String] { requests.map(\.method) }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if Task.isCancelled { throw TransportError(.cancelled, "cancelled") }
    var request = request
    do throws(BlobError) { try on.prepare?(&request, Cancellation()) } catch {
      throw TransportError(.source, error.message, cause: error)
    }
    let number = state.withLock { [request] requests in
      requests.append(request)
      return requests.count - 1
    }
    do {
      let answer = try answer(number, request)
      on.sent(try body.map(Self.length) ?? 0)
      return answer
    } catch {
      // The connection broke after the body was sent.
      if error.code == .broken { on.sent(try body.map(Self.length) ?? 0) }
      throw error
    }
  }

  private static func length(of body: BlobSlice) throws(TransportError) -> Int {
    if let length = body.length { return Int(length) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    do {
      let reader = try body.open(Cancellation())
      var length = 0
      while case let count = try reader.read(into: buffer), count > 0 { length += count }
      return length
    } catch {
      throw TransportError(.source, error.message, cause: error)
    }
  }
}

extension HTTPResponse {
  static func status(_ status: Int, _ headers: HTTPHeaders = [:], text: String = "") -> HTTPResponse {
    var headers = headers
    if !text.isEmpty { headers["Content-Type"] = "text/plain" }
    return HTTPResponse(head: HTTPHead(status: status, headers: headers), body: Array(text.utf8))
  }

  /// The response 201 of a tus server.
  static let created = status(201, ["Location": "/up/1", "Upload-Offset": "0"])

  /// A response that fits HEAD and PATCH, although HEAD usually has 200 and PATCH 204.
  static func at(_ offset: Int64, of length: Int64? = nil) -> HTTPResponse {
    var headers: HTTPHeaders = ["Upload-Offset": String(offset)]
    if let length { headers["Upload-Length"] = String(length) }
    return status(204, headers)
  }
}

/// A clock that never waits, and records the delays.
final class LeapingClock: Clock {
  struct Instant: InstantProtocol {
    var time: Duration
    func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
    func duration(to other: Instant) -> Duration { other.time - time }
    static func < (a: Instant, b: Instant) -> Bool { a.time < b.time }
  }
  private let state = Mutex<[Duration]>([])

  var waits: [Duration] { state.withLock { $0 } }
  var now: Instant { Instant(time: waits.reduce(.zero, +)) }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try Task.checkCancellation()
    state.withLock { $0.append(deadline.time - $0.reduce(.zero, +)) }
    await Task.yield()
  }
}

let host = HTTPURL("http://media.example/in/")!

/// An uploader whose delays take no time. `knowsHost`: the host's successes are trusted, so no file is queried;
/// `PutAnswerTests` tests untrusted hosts.
func uploader(
  _ uploadProtocol: any UploadProtocol, _ transport: any Transport, retries: Int = 8, partSize: Int64? = nil,
  headers: HTTPHeaders = [:], limits: PartLimits? = nil, knowsHost: Bool = true, clock: LeapingClock = LeapingClock()
) -> Uploader {
  let natural = uploadProtocol is PlainPut ? PartLimits(firstPart: .max) : PartLimits()
  var uploader = Uploader(
    UploadDestination(endpoint: host, uploadProtocol: uploadProtocol, limits: limits ?? natural, headers: headers),
    transport: transport, retry: RetryPolicy(retries: retries), partSize: partSize)
  uploader.clock = clock
  if knowsHost { uploader.destination.acquaintance.putAnswers.trust(folderOf: host) }
  return uploader
}

extension Uploader {
  /// The error with which an upload of this length ends; nil: it succeeds.
  func failure(of length: Int64 = 1000, as name: BytePath = "a.mov") async -> UploadError? {
    do {
      _ = try await upload(PatternSource(length: length), as: name)
      return nil
    } catch {
      return error
    }
  }
}

/// Records the outcome of each item.
final class Outcomes: UploadObserver {
  private let state = Mutex<[String: UploadOutcome]>([:])
  private let ending: @Sendable (Int) -> Void
  private let other: (any UploadObserver)?

  /// `ending` is called with the number of items that have ended.
  init(_ ending: @escaping @Sendable (Int) -> Void = { _ in }, also other: (any UploadObserver)? = nil) {
    self.ending = ending
    self.other = other
  }

  func started(_ item: UploadItem, _ progress: UploadProgress) { other?.started(item, progress) }
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    other?.ended(item, progress, outcome)
    let count = state.withLock { state in
      state["\(item.target.path)"] = outcome
      return state.count
    }
    ending(count)
  }

  subscript(name: String) -> UploadOutcome? { state.withLock { $0[name] } }
  var count: Int { state.withLock { $0.count } }
  var sent: Int { count { if case .sent = $0 { true } else { false } } }
  var doneBefore: Int { count { if case .doneBefore = $0 { true } else { false } } }

  func error(_ name: String) -> UploadError? {
    if case .failed(let error) = self[name] { error } else { nil }
  }

  private func count(_ isMeant: (UploadOutcome) -> Bool) -> Int {
    state.withLock { $0.values.filter(isMeant).count }
  }
}

extension HTTPResponse {
  /// The response to a creation without a body.
  static func emptyCreation(_ uploadProtocol: String) -> HTTPResponse {
    uploadProtocol == "tus" ? .created : .status(201, ["Location": "/up/1", "Upload-Complete": "?0"])
  }

  /// The response to HEAD or PATCH from a server that has `count` of `length` bytes: tus, or the IETF draft.
  static func holding(_ count: Int64, of length: Int64, _ name: String) -> HTTPResponse {
    if name == "tus" { return .at(count, of: length) }
    return .status(204, ["Upload-Offset": String(count), "Upload-Complete": count == length ? "?1" : "?0"])
  }
}

/// Records the events of an upload.
final class RecordedEvents: UploadEvents {
  private let state = Mutex<(sessions: [UploadSession], sent: Int64)>(([], 0))

  var sessions: [UploadSession] { state.withLock { $0.sessions } }
  var bytes: Int64 { state.withLock { $0.sent } }

  func opened(_ session: UploadSession) { state.withLock { $0.sessions.append(session) } }
  func acknowledged(_ offset: Int64) {}
  func sent(_ count: Int) { state.withLock { $0.sent += Int64(count) } }
}

/// A ledger that forwards how far bytes were sent.
final class SendingLedger: UploadLedger {
  let entry: Int64? = nil
  private let note: @Sendable (Int64) -> Void

  init(_ note: @escaping @Sendable (Int64) -> Void) { self.note = note }

  func opened(_ session: UploadSession) {}
  func acknowledged(_ offset: Int64) {}
  func restarted() {}
  func abandoned() {}
  func recognized(_ validator: Validator) {}
  func receipt(_ receipt: PartReceipt) {}
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)? {
    { [note] end, _ in note(end) }
  }
  func flush() async throws(UploadError) {}

  func tracker(_ progress: UploadProgress = UploadProgress(), notesCreation: Bool = false) -> UploadTracker {
    UploadTracker(
      SpooledSource(DataSource([]), BlobInfo(length: 0), SpoolOptions()), progress, self, partSize: nil,
      notesCreation: notesCreation)
  }
}
