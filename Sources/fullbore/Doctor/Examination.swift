import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// Examines a server, from its name to an upload. Every wait has a bound.
struct Examination: Sendable {
  let target: DoctorTarget
  let settings: DoctorOptions
  /// Asks whether a test file may be written; false if nobody can be asked.
  let mayWrite: @Sendable () async -> Bool

  private var report: DoctorReport { target.report }

  func run() async -> ExitStatus {
    let options: SocketTransport.Options
    do throws(UploadError) { options = try target.transportOptions() } catch {
      report.note("options", error.message)
      return .usage
    }
    guard await reaches(options) else { return Task.isCancelled ? .interrupted : .unreachable }
    if target.endpoint.scheme == "https", await !CertificateCheck(target: target).run(options) {
      report.note(
        "others", "not examined: credentials would go to a server that is not verified; --insecure sends them")
      return Task.isCancelled ? .interrupted : .failed
    }
    let log = ExchangeLog(SocketTransport(options))
    guard let destination = await discover(log) else {
      return Task.isCancelled ? .interrupted : report.findings.isEmpty ? .unreachable : .failed
    }
    tellKeepAlive(log)
    // A WebDAV or PUT server may not know the method, and then says 405 or 501.
    if let response = log.last("OPTIONS")?.response, response.status == 403 {
      target.tellRefusal(of: "OPTIONS", response)
    }
    await examine(destination, options, log)
    if Task.isCancelled { return .interrupted }
    return report.findings.isEmpty ? .ok : .failed
  }

  /// The name and the addresses of the server, or of the proxy in use.
  private func reaches(_ options: SocketTransport.Options) async -> Bool {
    let endpoint = target.endpoint
    let proxy: Proxy?
    do throws(TransportError) { proxy = try options.proxy(for: endpoint) } catch {
      report.note("proxy", error.message)
      return false
    }
    if let proxy {
      let origin = target.connection.proxy == nil ? "as the environment of this process has it" : "as --proxy has it"
      report.note("proxy", "requests go through \(proxy), \(origin); it resolves the name and connects")
      return await AddressCheck(host: proxy.host, port: proxy.port, report: report).run()
    }
    return await AddressCheck(host: endpoint.host, port: endpoint.port, report: report).run()
  }

  // MARK: Protocols

  /// Asks for the protocol as a push does. nil: there is none, which was reported.
  private func discover(_ log: ExchangeLog) async -> UploadDestination? {
    let endpoint = target.endpoint
    do throws(UploadError) {
      let destination = try await UploadDestination.discover(
        endpoint,
        speaking: KnownProtocols.discovery(target.destination.protocolName, ProtocolSettings(), at: endpoint),
        headers: target.headers, retry: RetryPolicy(retries: 0), over: log)
      log.entries.forEach { report.noteProgram(ServerProgram(of: $0.response)) }
      tellProtocols(destination, log)
      return destination
    } catch {
      log.entries.forEach { report.noteProgram(ServerProgram(of: $0.response)) }
      await tell(error, log)
      return nil
    }
  }

  private func tell(_ failure: UploadError, _ log: ExchangeLog) async {
    guard let response = log.last("OPTIONS")?.response else {
      let error = await target.connection.explained(failure, at: target.endpoint)
      return report.note("http", error.advised)
    }
    if [502, 503, 504].contains(response.status) {
      return report.found(
        Finding(
          kind: .backend, what: "a proxy answers \(response.status): the server behind it is not ready or not reached",
          consequence: "No upload can begin.", mends: Mend.backend), by: ServerProgram(of: response))
    }
    if [403, 405, 501].contains(response.status), target.destination.protocolName == "tus" {
      return target.tellRefusal(of: "OPTIONS", response)
    }
    report.found(
      Finding(
        kind: response.status == 407 ? .proxy : .refused, what: failure.advised, consequence: "No upload can begin."))
  }

  private func tellProtocols(_ destination: UploadDestination, _ log: ExchangeLog) {
    let headers = log.last("OPTIONS")?.response.headers ?? [:]
    var offers: [String] = []
    if let versions = headers["Tus-Version"] {
      let extensions = headers.list("Tus-Extension").joined(separator: ", ")
      offers.append("tus \(versions)\(extensions.isEmpty ? "" : " (\(extensions))")")
    }
    if let limits = headers["Upload-Limit"] { offers.append("resumable uploads (\(limits))") }
    if let classes = headers["DAV"] { offers.append("WebDAV \(classes)") }
    if offers.isEmpty { offers.append("nothing by OPTIONS") }
    let total = destination.limits.total.map { ", files up to \(Quantity.text(bytes: $0))" } ?? ""
    report.fine(
      "protocols",
      "offered: \(offers.map { String($0.prefix(300)) }.joined(separator: "; ")). A push speaks \(destination.uploadProtocol.name)\(total)"
    )
  }

  private func tellKeepAlive(_ log: ExchangeLog) {
    guard let response = log.last("OPTIONS")?.response else { return }
    let closes = response.headers.list("Connection").contains { $0.isSameField("close") }
    // Some servers close a connection after an error.
    guard closes, response.isSuccess else { return }
    report.found(
      Finding(
        kind: .keepAlive, what: "the server closes the connection after each response",
        consequence: "Each file and each part waits for a new connection: many small files take several times as long.",
        mends: Mend.keepAlive))
  }

  // MARK: Uploads

  private func examine(
    _ destination: UploadDestination, _ options: SocketTransport.Options, _ log: ExchangeLog
  ) async {
    let dialect = UploadDialect(destination.uploadProtocol.name)
    await CrossOriginCheck(target: target, transport: log, dialect: dialect, origin: settings.origin).run()
    if let dialect {
      await examine(dialect, destination, options, log)
    } else if target.destination.isForm {
      report.note("upload", "not examined: a form that was posted cannot be taken back")
    } else if await isAllowed() {
      await FileUploadCheck(
        target: target, destination: destination, options: options, settings: settings, log: log
      ).run()
    }
  }

  private func examine(
    _ dialect: UploadDialect, _ destination: UploadDestination, _ options: SocketTransport.Options, _ log: ExchangeLog
  ) async {
    let append = dialect.append(to: target.missingURL, at: 0)
    let impossible = target.request(append.method, append.url, append.headers)
    let (refused, hasMarks) = dialect == .tus ? await tellMethods(log) : ([], true)
    let most = [settings.largest, destination.limits.total, destination.limits.largest].compactMap { $0 }.min()
    let limit = await SizeCheck(
      target: target, request: impossible, options: options, largest: max(1, most ?? settings.largest)
    ).run()
    let streaming = StreamingCheck(target: target, options: options, largestBody: limit?.passes)
    let isEarly = await streaming.refusesEarly(impossible) { dialect.isMarked($0) ?? true }
    if isEarly == true {
      report.fine("buffering", "the server refuses a request before all of its body has left")
    }
    if Task.isCancelled { return }
    if await isAllowed() {
      await OffsetUploadCheck(
        target: target, dialect: dialect, destination: destination, streaming: streaming, pause: settings.pause,
        log: log, isKnownToStream: isEarly == true && dialect == .tus, takesParts: !refused.contains("PATCH"),
        hasMarks: hasMarks
      ).run()
    } else if isEarly == false {
      streaming.noteLateRefusal()
    }
  }

  /// A tus server marks its responses, so a refusal without the mark comes from something before it, unless the server's
  /// own responses arrive without the mark. Returns the methods that are refused, and whether the marks arrive.
  private func tellMethods(_ log: ExchangeLog) async -> (refused: [String], hasMarks: Bool) {
    if await lacksMarks(log) {
      report.note(
        "method",
        "not known: responses of this server arrive without \(UploadDialect.mark), which tells its refusals from those "
          + "of a proxy")
      return ([], false)
    }
    var refused: [String] = []
    for method in ["PATCH", "DELETE"] {
      var question = UploadDialect.tus.request(method, target.missingURL)
      if method == "PATCH" { question = UploadDialect.tus.append(to: target.missingURL, at: 0) }
      let request = target.request(method, question.url, question.headers)
      do throws(TransportError) {
        let response = try await target.answer(to: request, over: log)
        if [403, 405, 501].contains(response.status), UploadDialect.tus.isMarked(response) == false {
          target.tellRefusal(of: method, response)
          refused.append(method)
        }
      } catch {
        report.note("method", error.message)
      }
    }
    return (refused, true)
  }

  /// Whether the response to HEAD of an upload that does not exist lacks the mark of tus, and is not a refusal by a proxy.
  private func lacksMarks(_ log: ExchangeLog) async -> Bool {
    let question = UploadDialect.tus.request("HEAD", target.missingURL)
    let request = target.request("HEAD", question.url, question.headers)
    // Without a response, nothing is known about marks.
    guard let response = try? await target.answer(to: request, over: log) else { return false }
    return (response.isSuccess || [404, 410].contains(response.status)) && UploadDialect.tus.isMarked(response) == false
  }

  private func isAllowed() async -> Bool {
    if await mayWrite() { return true }
    if Task.isCancelled { return false }
    report.note(
      "upload",
      "no test file was written, so nothing was examined that needs one: the URLs of uploads, pauses, what is stored. "
        + "--yes writes one and removes it")
    return false
  }
}
