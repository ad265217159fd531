import BlobHTTP

/// Finds the route of a request, after checks that apply to all routes.
enum Router {
  static func plan(_ request: Request, _ service: Service) -> Plan {
    do throws(ServerError) {
      let target = try RequestTarget(request.target)
      return MonitoringRoutes.health(request, target, service) ?? regular(request, target, service)
    } catch {
      return .refuse(error)
    }
  }

  /// The plan for any request but one for the server's health.
  static func regular(_ request: Request, _ target: RequestTarget, _ service: Service) -> Plan {
    do throws(ServerError) {
      try service.access.hosts.check(request.headers, authority: target.authority, isHTTP11: request.isHTTP11)
      let method = method(of: request)
      if method == "OPTIONS" { return .reply(OptionsRoutes.reply(request.headers, service)) }
      if let plan = SharePages.open(request.headers, method, target, service) { return plan }
      if let refusal = service.access.refusal(method, target, request.headers) {
        return .reply(SharePages.gate(refusal, request.headers, method, target, service))
      }
      if ["PUT", "POST", "PATCH"].contains(method) { try checkCoding(request.headers) }
      let call = RoutedRequest(request, method: method, target, service)
      return MonitoringRoutes.metrics(call) ?? file(call)
    } catch {
      return .refuse(error)
    }
  }

  /// The plan for a request that has all it needs to be processed.
  static func file(_ call: RoutedRequest) -> Plan {
    call.request.beginVisit(call.service.counters)
    do throws(ServerError) { return try route(call) } catch { return .refuse(error) }
  }

  private static func route(_ call: RoutedRequest) throws(ServerError) -> Plan {
    if let name = call.target.uploadName {
      return try TusRoutes.isMeant(call) ? TusRoutes.plan(call, name) : IETFRoutes.plan(call, name)
    }
    if let plan = try SharePages.plan(call) { return plan }
    let (path, isFolder) = try ServedPath.fromURL(call.target.path)
    if ["PUT", "POST"].contains(call.method), !call.options.isReadOnly {
      try PartialBody.refuseRanges(call.headers)
      if let plan = try IETFCreation.plan(call, path, isFolder: isFolder) { return plan }
      try PartialBody.refuse(call.headers)
    }
    switch call.method {
    case "GET", "HEAD": return try GetRoutes.plan(call, path, isFolder: isFolder)
    case "QUERY": return try QueryRoutes.plan(call, path, isFolder: isFolder)
    case "PUT" where !call.options.isReadOnly: return try PutRoutes.plan(call, path, isFolder: isFolder)
    case "POST" where !call.options.isReadOnly:
      if let form = try FormRoutes.plan(call, path, isFolder: isFolder) { return form }
      if TusRoutes.isCreation(call) { return try TusRoutes.create(call, isFolder ? path : path.parent) }
      try FormRoutes.checkSite(call)
      return try PutRoutes.plan(call, path, isFolder: isFolder)
    case "DELETE" where call.options.allowsDelete && !call.options.isReadOnly:
      // To ignore the condition would delete what the client wants to keep, and to heed it would tell the file's time.
      if call.options.reading == .nothing, call.headers["If-Unmodified-Since"] != nil {
        throw ServerError(
          403, "this server only receives: it tells no time of a file, so it heeds no If-Unmodified-Since")
      }
      return call.service.onWorker { () throws(ServerError) in
        try call.service.store.required(\.removal, "delete files").remove(path) { (item) throws(ServerError) in
          if isFolder { throw ServerError(404, "no file \(path)") }
          try Preconditions.check(call.headers, item)
        }
        return .reply(Reply(204))
      }
    default:
      let known = ["PUT", "POST", "DELETE", "PATCH"].contains(call.method)
      let text =
        if !known { "the method is not spoken" } else if call.options.isReadOnly {
          "this server is read-only"
        } else {
          "\(call.method) is not allowed here"
        }
      let kind: ServerError.Kind? = known && call.options.isReadOnly ? .readOnly : nil
      let error = ServerError(known ? 405 : 501, text, kind: kind)
      return .reply(Reply(error, ["Allow": OptionsRoutes.allowed(call.options)]))
    }
  }

  /// The server stores body bytes unchanged, so an encoded body would become a different file than intended. RFC 9110
  /// §15.5.16.
  private static func checkCoding(_ headers: HTTPHeaders) throws(ServerError) {
    guard let coding = headers.list("Content-Encoding").first(where: { !$0.isSameField("identity") }) else { return }
    var error = ServerError(
      415, "a body with Content-Encoding '\(coding.prefix(100))' is not taken: send the file's own bytes, uncoded")
    error.headers["Accept-Encoding"] = "identity"
    throw error
  }

  /// Some proxies pass only GET and POST. tus 1.0 §X-HTTP-Method-Override.
  private static func method(of request: Request) -> String {
    let override = request.headers["X-HTTP-Method-Override"]
    return override == "PATCH" || override == "DELETE" ? override! : request.method
  }
}

/// A request with its parsed target and the service, as passed to routes.
struct RoutedRequest: Sendable {
  let request: Request
  let method: String
  let target: RequestTarget
  let service: Service
  var headers: HTTPHeaders { request.headers }
  var options: ServerOptions { service.options }
  /// Whether a folder has this path, and the client may know it.
  func showsFolder(at path: ServedPath) throws(ServerError) -> Bool {
    if options.reading == .nothing { return false }
    return try service.store.item(at: path)?.isFolder == true
  }

  /// Who sends the request; nil: nobody asks for it.
  var sender: Sender? { options.received == nil ? nil : request.sender }

  init(_ request: Request, method: String, _ target: RequestTarget, _ service: Service) {
    self.request = request
    self.method = method
    self.target = target
    self.service = service
  }
}

/// The target in the request line, in origin form or absolute form. RFC 9112 §3.2.
struct RequestTarget: Sendable {
  /// Percent-encoded, without the query.
  let path: [UInt8]
  /// Percent-encoded, without the question mark; empty: there is none.
  let query: [UInt8]
  /// Only present in absolute form.
  let authority: String?

  init(_ bytes: [UInt8]) throws(ServerError) {
    let whole = bytes.prefix { $0 != UInt8(ascii: "#") }
    var path = whole.prefix { $0 != UInt8(ascii: "?") }
    query = Array(whole.dropFirst(path.count + 1))
    var authority: String?
    let text = String(decoding: path.prefix(8), as: UTF8.self).lowercased()
    for scheme in ["http://", "https://"] where text.hasPrefix(scheme) {
      let rest = path.dropFirst(scheme.utf8.count)
      authority = String(decoding: rest.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
      path = rest.drop { $0 != UInt8(ascii: "/") }
    }
    if path.isEmpty || path.elementsEqual([UInt8(ascii: "*")]) { path = [UInt8(ascii: "/")] }
    self.path = Array(path)
    self.authority = authority
  }

  /// A relative reference from this target to `path`, which begins with a slash. A reverse proxy may publish the server
  /// below a path prefix that it strips. The client's URL has the prefix, so only a relative reference leads back
  /// there. RFC 3986 §4.2.
  func reference(to path: String) -> String {
    let depth = self.path.count { $0 == UInt8(ascii: "/") } - 1
    let reference = String(repeating: "../", count: max(0, depth)) + path.dropFirst()
    return reference.isEmpty ? "./" : reference
  }

  /// The value of a parameter in the query, decoded; nil: the query does not have it. Throws 400 if it has it twice.
  func value(of name: String) throws(ServerError) -> [UInt8]? {
    let key = "\(name)=".utf8
    let values = query.split(separator: UInt8(ascii: "&")).filter { $0.starts(with: key) }
    if values.count > 1 { throw ServerError(400, "the query has '\(name)' twice") }
    guard let value = values.first else { return nil }
    guard let decoded = PercentCoding.decode(value.dropFirst(key.count)) else {
      throw ServerError(400, "a percent sign in the query is not followed by two hexadecimal digits")
    }
    return decoded
  }

  /// Whether the query asks for an archive of a folder.
  var asksForArchive: Bool { query.split(separator: UInt8(ascii: "&")).contains { $0.starts(with: "archive=".utf8) } }

  /// Whether the query asks for the preview of a picture.
  var asksForThumbnail: Bool { asks(for: "thumbnail") }

  /// Whether the query asks for a file to be saved and not shown.
  var asksForDownload: Bool { asks(for: "download") }

  private func asks(for word: String) -> Bool {
    query.split(separator: UInt8(ascii: "&")).contains { $0.elementsEqual(word.utf8) }
  }

  /// The id part of an upload's URL, `/.fullbore-upload/ID`; it is not validated. nil for other targets.
  var uploadName: String? {
    let prefix = Array("/\(ServedPath.uploadName)/".utf8)
    return path.starts(with: prefix) ? String(decoding: path.dropFirst(prefix.count), as: UTF8.self) : nil
  }
}
