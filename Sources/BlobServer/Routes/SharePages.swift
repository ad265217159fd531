import BlobHTTP
import SharePage

/// The page for browsers, where the options have one: the page itself at the URL of every folder, and below
/// `/.fullbore-page/` the files that it refers to and what it asks the server.
enum SharePages {
  /// The page and its files, which have no secrets and need no credentials; nil: the request is for something else.
  static func open(_ headers: HTTPHeaders, _ method: String, _ target: RequestTarget, _ service: Service) -> Plan? {
    guard service.options.page != nil, method == "GET" || method == "HEAD" else { return nil }
    // A path that no folder can have would make a page of any size: it names the root at the end of `../` for each slash.
    if headers.acceptsHTML, !isOwn(target), !target.asksForArchive,
      let (_, isFolder) = try? ServedPath.fromURL(target.path), isFolder
    {
      return .reply(page(target))
    }
    guard let file = name(target).flatMap(SharePage.file) else { return nil }
    return .reply(reply(file.bytes, file.type))
  }

  /// The response to a request without valid credentials: a browser gets the page, which asks for the code. The URL may be
  /// that of a file, to which the page then leads.
  static func gate(
    _ refusal: Reply, _ headers: HTTPHeaders, _ method: String, _ target: RequestTarget, _ service: Service
  ) -> Reply {
    guard service.options.page != nil, method == "GET" || method == "HEAD", headers.acceptsHTML, !isOwn(target),
      target.uploadName == nil, (try? ServedPath.fromURL(target.path)) != nil
    else { return refusal }
    var reply = page(target)
    reply.status = refusal.status
    for field in refusal.headers.fields where field.name == "WWW-Authenticate" {
      reply.headers.add(field.name, field.value)
    }
    return reply
  }

  private static func page(_ target: RequestTarget) -> Reply {
    reply(SharePage.page(base: target.reference(to: "/")), "text/html; charset=utf-8")
  }

  /// The answer to a question of the page; nil: the request is for something else.
  static func plan(_ call: RoutedRequest) throws(ServerError) -> Plan? {
    guard let page = call.options.page, isOwn(call.target) else { return nil }
    guard ["GET", "HEAD"].contains(call.method), name(call.target) == "about" else {
      throw ServerError(404, "the page for browsers has no such part")
    }
    let service = call.service
    return service.onWorker { .reply(Reply(200, json: about(page, service))) }
  }

  /// What the page shows of the server, and what it offers. `left`: seconds until it closes, since the clock of a phone may
  /// be wrong.
  private static func about(_ page: ServerOptions.BrowserPage, _ service: Service) -> String {
    let options = service.options
    func text(_ number: Int64?) -> String { number.map { String($0) } ?? "null" }
    return "{\"name\":\(JSONText.quoted(page.name)),\"free\":\(text(service.store.free)),"
      + "\"maxSize\":\(text(options.maxSize)),\"receives\":\(!options.isReadOnly),"
      + "\"lists\":\(options.reading != .nothing),\"downloads\":\(options.reading == .files),"
      + "\"left\":\(text(page.end.map { max(0, $0 - wallClock() / 1_000_000_000) })),\"once\":\(page.endsAfterVisit),"
      + "\"maxTotal\":\(text(service.store.isBoundByLimit ? options.maxTotal : nil))}"
  }

  private static let folder = Array("/\(ServedPath.pageName)/".utf8)

  private static func isOwn(_ target: RequestTarget) -> Bool { target.path.starts(with: folder) }

  /// The name of one of the page's files; nil: the target is another one.
  private static func name(_ target: RequestTarget) -> String? {
    isOwn(target) ? String(decoding: target.path.dropFirst(folder.count), as: UTF8.self) : nil
  }

  private static func reply(_ bytes: [UInt8], _ type: String) -> Reply {
    // Nothing but files of the server runs, and pictures that the page itself has made are shown.
    let policy =
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; "
      + "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return Reply(
      200,
      [
        "Content-Type": type, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer",
      ], body: .bytes(bytes))
  }
}
