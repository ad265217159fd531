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
          kind: error.asksForCredentials ? .refused : .upload, what: error.advised,
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
    let isPatient = await streaming.survives(settings.pause) { target.request("PUT", target.testURL) }
    if isPatient != nil, limit == nil {
      await ArrivalCheck(target: target, options: options, size: min(ArrivalCheck.usual, settings.largest))
        .run {
          target.request("PUT", target.testURL)
        } offset: {
          nil
        }
    }
  }

  private func remove(isWritten: Bool) async {
    do throws(TransportError) {
      let response = try await target.answer(to: target.request("DELETE", target.testURL), over: log)
      if response.isSuccess || [404, 410].contains(response.status) { return }
      if isWritten {
        target.report.note(
          "removal", "DELETE is answered \(response.status): remove the test file by hand: \(target.testURL)")
      }
    } catch {
      target.report.note("removal", "\(error.message): remove the test file by hand: \(target.testURL)")
    }
  }
}
