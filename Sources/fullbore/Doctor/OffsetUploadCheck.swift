import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// An upload by tus or resumable uploads that is begun and never finished, so that no file appears. It is deleted at the
/// end.
struct OffsetUploadCheck: Sendable {
  let target: DoctorTarget
  let dialect: UploadDialect
  let destination: UploadDestination
  let streaming: StreamingCheck
  let pause: Duration
  let log: ExchangeLog
  /// The server was seen to refuse a request before all of it had left, so nothing holds its requests back.
  let isKnownToStream: Bool
  /// No PATCH was seen to be refused.
  let takesParts: Bool
  /// A refusal without the mark of tus comes from a proxy. Otherwise the server's own responses arrive without it, too.
  let hasMarks: Bool

  /// More than what is sent, since the upload must not become complete.
  private var length: Int64 { min(2 * ArrivalCheck.usual + Self.sentBefore, destination.limits.total ?? .max) }

  /// More than the checks before `ArrivalCheck` send.
  private static let sentBefore: Int64 = 4 << 20

  func run() async {
    guard length >= Self.sentBefore else {
      return target.report.note(
        "upload", "the server takes files up to \(Quantity.text(bytes: length)), too small to examine an upload with")
    }
    let (begun, isUsable) = await create()
    guard let url = begun else { return }
    if takesParts, isUsable, await takesOffset(url) { await examine(url) }
    // The upload is deleted even if the examination was interrupted.
    await Task { await remove(url) }.value
  }

  /// Begins the upload. Returns its URL, and whether it can go on.
  private func create() async -> (HTTPURL?, isUsable: Bool) {
    let context = UploadContext(destination, over: log)
    let upload = UploadTarget(
      endpoint: target.endpoint, url: target.testURL, path: BytePath(target.testName), length: length)
    var failure: UploadError?
    do throws(UploadError) {
      _ = try await destination.uploadProtocol.create(upload, first: nil, context)
    } catch {
      failure = error
    }
    guard let entry = log.last("POST") else {
      if let failure { target.report.note("upload", "not begun: \(failure.message)") }
      return (nil, false)
    }
    target.report.noteProgram(ServerProgram(of: entry.response))
    guard entry.response.isSuccess, let location = entry.response.headers["Location"] else {
      tellFailure(entry, failure)
      return (nil, false)
    }
    let place = UploadLocation(location, of: entry.request.url, at: target.endpoint)
    let (url, finding) = await place.examined(length, dialect, target, log)
    if let finding {
      target.report.found(finding)
    } else if let failure {
      tellFailure(entry, failure)
    } else {
      target.report.fine("location", "the server names its uploads by URLs that can be reached")
      let responses = [entry.response] + (log.last("HEAD").map { [$0.response] } ?? [])
      if !hasMarks, responses.allSatisfy({ dialect.isMarked($0) == false }) {
        target.report.found(
          .field(
            UploadDialect.mark, of: .responses,
            "the responses to POST and HEAD of an upload lack Tus-Resumable, which tus servers put into each"))
      }
    }
    if url == nil { target.report.note("removal", "an unfinished upload of no bytes stays there until it expires") }
    return (url, finding?.kind != .field)
  }

  /// Sends a part of no bytes. Returns false, and reports it, if the server has not got the field with its offset.
  private func takesOffset(_ url: HTTPURL) async -> Bool {
    guard dialect == .tus else { return true }
    let append = dialect.append(to: url, at: 0)
    // Without a response, the other checks report that.
    guard
      let response = try? await target.answer(to: target.request(append.method, url, append.headers), over: log),
      response.status == 400, let reason = response.reason, reason.lowercased().contains("upload-offset")
    else { return true }
    target.report.found(
      .field("Upload-Offset", of: .requests, "PATCH with Upload-Offset: 0 is answered 400 (\(reason))"))
    return false
  }

  private func tellFailure(_ entry: ExchangeLog.Entry, _ failure: UploadError?) {
    if !hasMarks, dialect == .tus, entry.response.status == 412 {
      return target.report.found(
        .field(
          UploadDialect.mark, of: .requests,
          "POST with Tus-Resumable: \(Tus.version) is answered 412, though the server offers this version"))
    }
    if [403, 405, 501].contains(entry.response.status), hasMarks, dialect.isMarked(entry.response) != true {
      return target.tellRefusal(of: "POST", entry.response)
    }
    let isRefusal = [401, 403, 407].contains(entry.response.status)
    target.report.found(
      Finding(
        kind: isRefusal ? .refused : .upload,
        what: failure?.advisedForTestFile
          ?? "POST \(entry.request.url): answered \(entry.response.status) without a Location",
        consequence: "No upload can begin."))
  }

  private func examine(_ url: HTTPURL) async {
    let (arrives, refusal, interim) = await streaming.arrivesEarly(dialect, at: url, over: log)
    if let refusal, [403, 405, 501].contains(refusal.status) {
      // Of tus, the refusal was found before the upload began.
      if dialect == .resumable { target.tellRefusal(of: "PATCH", refusal) }
      return
    }
    switch arrives {
    case true?:
      target.report.fine("buffering", "the server has the first bytes of a request before the last have left")
    case false? where isKnownToStream:
      target.report.note("buffering", "the server stores the bytes of a request only once it has all of them")
    case false?: streaming.tellBuffering()
    case nil: break
    }
    if dialect == .resumable { tellInterim(interim + log.interim) }
    let isPatient = await streaming.survives(pause) { await part(of: url) }
    // A known limit is smaller, or larger than what is sent here.
    if isPatient != nil, streaming.largestBody == nil, length > Self.sentBefore + (2 << 20) {
      let arrival = ArrivalCheck(target: target, options: streaming.options, size: (length - Self.sentBefore) / 2)
      await arrival.run {
        await part(of: url)
      } offset: {
        await offset(of: url)
      }
    }
  }

  /// The bytes that the server has.
  private func offset(of url: HTTPURL) async -> Int64? {
    let question = dialect.request("HEAD", url)
    // Without a response, the offset is not known.
    return try? await target.answer(to: target.request("HEAD", url, question.headers), over: log)
      .headers.bytes("Upload-Offset")
  }

  /// The request that goes on with the upload.
  private func part(of url: HTTPURL) async -> HTTPRequest? {
    guard let offset = await offset(of: url) else { return nil }
    let append = dialect.append(to: url, at: offset)
    return target.request(append.method, url, append.headers)
  }

  private func tellInterim(_ heads: [HTTPHead]) {
    if heads.contains(where: { $0.status == 104 }) {
      return target.report.fine("interim-responses", "104 (Upload Resumption Supported) arrives here")
    }
    target.report.found(
      Finding(
        kind: .interim,
        what:
          "no 104 (Upload Resumption Supported) has arrived here, though the server offers resumable uploads: a proxy "
          + "drops interim responses, or the server sends none through it",
        consequence:
          "A client does not learn the URL of an upload that breaks during its first request, and sends it from "
          + "its first byte again; fullbore creates larger uploads by an empty request, which avoids that.",
        mends: Mend.interim))
  }

  private func remove(_ url: HTTPURL) async {
    let question = dialect.request("DELETE", url)
    let what = "an unfinished upload of less than \(Quantity.text(bytes: length)) stays there until it expires"
    do throws(TransportError) {
      let response = try await target.answer(to: target.request("DELETE", url, question.headers), over: log)
      if response.isSuccess || [404, 410].contains(response.status) { return }
      if [403, 405, 501].contains(response.status), hasMarks, dialect.isMarked(response) == false {
        // Told before, for an upload that is not there.
        return target.report.note("removal", what)
      }
      target.report.note("removal", "DELETE is answered \(response.status): \(what)")
    } catch {
      target.report.note("removal", "\(error.message): \(what)")
    }
  }
}

extension Finding {
  /// Something removes a field of the protocol.
  static func field(_ name: String, of messages: Mend.Direction, _ what: String) -> Finding {
    Finding(
      kind: .field, what: "\(what): something before the server removes \(name) from \(messages.rawValue)",
      consequence: messages == .requests
        ? "The server refuses each upload."
        : name == UploadDialect.mark
          ? "Clients that hold a server to the protocol refuse its responses; fullbore does without this field."
          : "A client does not learn how much the server has, so no upload can go on.",
      mends: Mend.field(name, of: messages))
  }
}

extension DoctorTarget {
  /// Something on the way does not let a method through.
  func tellRefusal(of method: String, _ response: HTTPResponse) {
    let program = ServerProgram(of: response)
    let consequence =
      switch method {
      case "PATCH": "Only what the first request carries arrives: larger files fail, or cost a detour by POST."
      case "OPTIONS":
        "A push cannot find out which protocols there are: it sends whole files by PUT, and an upload that breaks begins again."
      case "DELETE": "Uploads that are given up stay on the server until they expire."
      case "MOVE": "Files cannot get their names once they are complete, so no upload by WebDAV ends."
      default: "No upload can begin."
      }
    report.found(
      Finding(
        kind: .method,
        what: "\(method) is answered \(response.status) by something before the server"
          + (program.map { " (\($0.rawValue))" } ?? ""),
        consequence: consequence, mends: Mend.method(method)), by: program)
  }
}
