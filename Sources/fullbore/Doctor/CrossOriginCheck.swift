import BlobHTTP
import BlobUpload

/// Whether pages of other origins may upload, where the server offers that.
struct CrossOriginCheck: Sendable {
  let target: DoctorTarget
  let transport: any Transport
  let dialect: UploadDialect?
  /// nil: only a server that offers CORS to every page is examined.
  let origin: String?

  private static let anyOrigin = "https://fullbore-doctor.invalid"

  func run() async {
    let method = dialect == nil ? "PUT" : "PATCH"
    let page = origin ?? Self.anyOrigin
    let wanted = dialect == nil ? "content-type" : "content-type,tus-resumable,upload-offset"
    // A browser sends no credentials with this request. Fetch Standard, "CORS-preflight fetch".
    let preflight = HTTPRequest(
      "OPTIONS", target.endpoint,
      ["Origin": page, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": wanted])
    let plain = dialect?.request("HEAD", target.missingURL) ?? HTTPRequest("HEAD", target.missingURL)
    var request = target.request("HEAD", plain.url, plain.headers)
    request.headers["Origin"] = page
    do throws(TransportError) {
      let before = try await target.answer(to: preflight, over: transport)
      let after = try await target.answer(to: request, over: transport)
      tell(before, after, method)
    } catch {
      target.report.note("cors", "not examined: \(error.message)")
    }
  }

  private func tell(_ preflight: HTTPResponse, _ response: HTTPResponse, _ method: String) {
    let name = "Access-Control-Allow-Origin"
    let (allowsFirst, allowsThen) = (preflight.headers[name] != nil, response.headers[name] != nil)
    if !allowsFirst, !allowsThen {
      if let origin {
        found(
          "no page of \(origin) may upload: no response has \(name)",
          mends: Mend.crossOrigin(isTwice: false)
            + [.advice(nil, "or let the server allow this origin (fullbore serve --allow-origin \(origin)).")])
      }
      return
    }
    var isFine = true
    func complain(_ what: String, isTwice: Bool = false) {
      isFine = false
      found(what, mends: Mend.crossOrigin(isTwice: isTwice))
    }
    let isTwice = [preflight, response].contains { answer in
      answer.headers.fields.count { $0.name.isSameField(name) } > 1
    }
    if isTwice { complain("a response has \(name) twice, which browsers refuse", isTwice: true) }
    if allowsFirst != allowsThen {
      complain("only the response \(allowsFirst ? "to OPTIONS has" : "to other requests than OPTIONS has") \(name)")
    }
    if allowsFirst, !preflight.isSuccess {
      complain("OPTIONS is answered \(preflight.status), and browsers take a success only")
    }
    let methods = preflight.headers.list("Access-Control-Allow-Methods")
    if allowsFirst, !methods.contains("*"), !methods.contains(method) {
      complain("Access-Control-Allow-Methods does not list \(method)")
    }
    let exposed = response.headers.list("Access-Control-Expose-Headers").map { $0.lowercased() }
    let needed = dialect == nil ? [] : ["location", "upload-offset"]
    let hidden = needed.filter { !exposed.contains($0) }
    if allowsThen, !exposed.contains("*"), !hidden.isEmpty {
      complain("Access-Control-Expose-Headers does not list \(hidden.joined(separator: " and "))")
    }
    if isFine { target.report.fine("cors", "pages of \(origin ?? "any origin") may upload") }
  }

  private func found(_ what: String, mends: [Mend]) {
    target.report.found(
      Finding(
        kind: .crossOrigin, what: what,
        consequence: "Uploads from a page of another origin fail in the browser; other clients are not affected.",
        mends: mends))
  }
}
