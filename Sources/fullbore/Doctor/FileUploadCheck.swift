import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// An upload by PUT or WebDAV: a small file under a name of its own, which is deleted at the end.
struct FileUploadCheck: Sendable {
  let target: DoctorTarget
  let destination: UploadDestination
  let options: SocketTransport.Options
  let settings: DoctorOptions
  let log: ExchangeLog

  private static let length: Int64 = 128 << 10

  func run() async {
    let isWritten = await write()
    if isWritten { await examine() }
    // The file is deleted even if the examination was interrupted.
    await Task { await remove(isWritten: isWritten) }.value
  }

  /// Uploads the file as a push does. Returns whether it is there.
  private func write() async -> Bool {
    let uploader = Uploader(destination, transport: log, retry: RetryPolicy(retries: 0))
    let upload = UploadTarget(
      endpoint: target.endpoint, url: target.testURL, path: BytePath(target.testName), length: Self.length)
    do throws(UploadError) {
      _ = try await uploader.upload(ZeroSource(length: Self.length), BlobInfo(length: Self.length), to: upload)
      target.report.fine("upload", "a file of \(Quantity.text(bytes: Self.length)) arrives")
      tellMove()
      return true
    } catch {
      if tellMove() || tellPut() { return false }
      target.report.found(
        Finding(
          kind: error.asksForCredentials ? .refused : .upload, what: error.advisedForTestFile,
          consequence: "A push fails in the same way."))
      return false
    }
  }

  /// Reports a refused MOVE, also if the push has found another way.
  @discardableResult private func tellMove() -> Bool {
    guard let entry = log.entries.last(where: { $0.request.method == "MOVE" && !$0.response.isSuccess }) else {
      return false
    }
    switch entry.response.status {
    case 403, 405, 501: target.tellRefusal(of: "MOVE", entry.response)
    case 400, 502: tellDestination(entry.response)
    default: return false
    }
    return true
  }

  /// The server compares the field `Destination`, which has the client's scheme and host, with its own. RFC 4918 §10.3.
  private func tellDestination(_ response: HTTPResponse) {
    target.report.found(
      Finding(
        kind: .location,
        what:
          "MOVE is answered \(response.status): the server takes the URL in its field Destination for that of another "
          + "server, since a proxy has another scheme, host or port",
        consequence: "Files cannot get their names once they are complete, so no upload by WebDAV ends.",
        mends: [
          Mend(
            .nginx, in: "in the location block", "set $destination $http_destination;",
            "if ($http_destination ~ ^https://(.*)$) { set $destination http://$1; }",
            "proxy_set_header Destination $destination;", "proxy_set_header Host $http_host;"),
          Mend(.apache, in: "in the virtual host of the server", "RequestHeader edit Destination ^https: http: early"),
          Mend(.haproxy, in: "in the frontend", "http-request replace-header Destination ^https://(.*) http://\\1"),
          Mend(.caddy, in: "in reverse_proxy", "header_up Destination https:// http://"),
        ]))
  }

  private func tellPut() -> Bool {
    guard let entry = log.last("PUT"), [403, 405, 501].contains(entry.response.status) else { return false }
    target.tellRefusal(of: "PUT", entry.response)
    return true
  }

  private func examine() async {
    // The file is there, so that neither condition holds.
    let impossible = target.request("PUT", target.testURL, ["If-Match": "\"\(target.testName)\""])
    let limit = await SizeCheck(
      target: target, request: impossible, options: options, largest: settings.largest
    ).run()
    let streaming = StreamingCheck(target: target, options: options, largestBody: limit?.passes)
    switch await streaming.refusesEarly(impossible, isFromServer: { $0.status == 412 }) {
    case true?: target.report.fine("buffering", "the server refuses a request before all of its body has left")
    case false?: streaming.noteLateRefusal()
    case nil: target.report.note("buffering", "not known: the server ignores conditions, or reads bodies to their end")
    }
    let replacement = await replacement()
    let isPatient = await streaming.survives(settings.pause) { replacement }
    if isPatient != nil, limit == nil {
      await ArrivalCheck(target: target, options: options, size: min(ArrivalCheck.usual, settings.largest))
        .run {
          replacement
        } offset: {
          nil
        }
    }
  }

  /// A request that replaces the test file. As in a push, it has `If-Match: *` where the server replaces nothing unasked.
  private func replacement() async -> HTTPRequest {
    var request = target.request("PUT", target.testURL)
    // Without a response, the requests that follow report that.
    if let response = try? await target.answer(to: request, over: log) { _ = request.changeCondition(after: response) }
    return request
  }

  /// Deletes the test file. If the server keeps the file, it is reported with its URL and size.
  private func remove(isWritten: Bool) async {
    for left in leftUnderOtherNames { await tell(left.url, left.reason, isCertain: left.isCertain) }
    do throws(TransportError) {
      let response = try await target.answer(to: target.request("DELETE", target.testURL), over: log)
      if response.isGone { return }
      await tell(target.testURL, "DELETE is answered \(response.status)", isCertain: isWritten)
    } catch {
      await tell(target.testURL, error.message, isCertain: true)
    }
  }

  private func tell(_ url: HTTPURL, _ reason: String, isCertain: Bool) async {
    // Without a response, it counts as there.
    let response = try? await target.answer(to: target.request("HEAD", url), over: log)
    if let response, [404, 410].contains(response.status) || !response.isSuccess && !isCertain { return }
    let size = response.flatMap { $0.isSuccess ? $0.headers.bytes("Content-Length") : nil }
    let file = "the test file\(size.map { " of \(Quantity.text(bytes: $0))" } ?? "")"
    target.report.note("removal", "\(reason): remove \(file) by hand: \(url)")
  }

  /// Files that the upload has put aside, and has neither moved to their name nor deleted.
  private var leftUnderOtherNames: [(url: HTTPURL, reason: String, isCertain: Bool)] {
    var left: [(url: HTTPURL, reason: String, isCertain: Bool)] = []
    for entry in log.entries where entry.request.url != target.testURL {
      let (url, response) = (entry.request.url, entry.response)
      let known = left.first { $0.url == url }
      left.removeAll { $0.url == url }
      switch entry.request.method {
      case "PUT" where response.isSuccess: left.append((url, "it was not moved to its name", true))
      case "DELETE" where !response.isGone:
        left.append((url, "DELETE is answered \(response.status)", known?.isCertain ?? false))
      case "DELETE",
        "MOVE" where response.isSuccess:
        break
      default: if let known { left.append(known) }
      }
    }
    return left
  }
}

extension HTTPResponse {
  /// The response to a DELETE says that there is nothing at the URL now.
  fileprivate var isGone: Bool { isSuccess || [404, 410].contains(status) }
}
