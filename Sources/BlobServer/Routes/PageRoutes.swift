import BlobHTTP
import Blobs

/// A simple HTML page that lists a folder. A folder with many names takes several pages, each with a link to the next.
enum PageRoutes {
  /// The most names of a page, which is in memory as a whole.
  private static let mostNames = 10_000

  static func plan(_ call: RoutedRequest, _ path: ServedPath) throws(ServerError) -> Plan {
    let start = try call.target.value(of: "after").map { BytePath($0) }
    let limit = try call.target.value(of: "limit").flatMap { Int(String(decoding: $0, as: UTF8.self)) }
    let most = limit.map { min(max(1, $0), mostNames) } ?? mostNames
    let listing = try call.service.store.required(\.listing, "list folders")
    let isForScripts = call.headers.accepts("application/json")
    return try call.service.folders.page { () throws(ServerError) in
      // Many may have waited for the lists before this one.
      if call.request.clientHasGone { throw ServerError(503, "the client has not waited for the list of \(path)") }
      let list = try listing.list(path, after: start, atMost: most)
      if isForScripts { return FolderJSON.reply(path, list, call) }
      return reply(200, page(path, list, takesForms: takesForms(call.options)))
    }
  }

  /// The page for a browser whose form was not published completely: the files that failed, with reasons.
  static func problem(
    _ status: Int, _ folder: ServedPath, at url: String, _ failures: [(name: String, reason: String)], published: Int
  ) -> Reply {
    var html = begin("Not everything has arrived") + "<ul>\n"
    for (name, reason) in failures { html += "<li><b>\(escape(name))</b>: \(escape(reason))</li>\n" }
    html += "</ul>\n<p>Files that have arrived: \(published). "
    return reply(
      status, html + "<a href=\"\(url)\">\(escape(folder.description))</a></p>\n</body></html>\n")
  }

  private static func reply(_ status: Int, _ page: String) -> Reply {
    let policy =
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return Reply(
      status,
      [
        "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": policy,
      ], body: .bytes(Array(page.utf8)))
  }

  private static func takesForms(_ options: ServerOptions) -> Bool { !options.isReadOnly }

  private static func begin(_ title: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en"><head><meta charset="utf-8"><title>\(title)</title>
    <style>body{font:1rem/1.6 system-ui,sans-serif;margin:2rem}td{padding:0 1.5rem 0 0}
    td+td{text-align:right;font-variant-numeric:tabular-nums}</style></head>
    <body><h1>\(title)</h1>

    """
  }

  private static let form = """
    <form method="post" enctype="multipart/form-data"><p><label>Send files here, \(FormEntries.mostFiles) at most:
    <input type="file" name="file" multiple required></label> <button>Send</button></p></form>

    """

  private static func page(_ path: ServedPath, _ list: FolderPage, takesForms: Bool) -> String {
    let entries = list.entries
    var html = begin(escape(path.description)) + (takesForms ? form : "") + "<table>\n"
    html.reserveCapacity(html.utf8.count + 128 * entries.count)
    if !path.isRoot { html += "<tr><td><a href=\"../\">../</a></td><td></td></tr>\n" }
    for entry in entries {
      let slash = entry.item.isFolder ? "/" : ""
      let size = entry.item.isFolder ? "" : size(entry.item.length)
      html +=
        "<tr><td><a href=\"\(entry.reference)\">\(escape(entry.name.description))\(slash)</a></td><td>\(size)</td></tr>\n"
    }
    html += "</table>\n"
    if let next = list.next {
      html += "<p><a href=\"./?after=\(HTTPURL.encode(next.bytes))\">More names</a></p>\n"
    } else if entries.isEmpty {
      html += "<p>\(list.isFirst ? "Nothing has arrived here yet" : "There are no more names").</p>\n"
    }
    return html + "</body></html>\n"
  }

  /// Escapes text for HTML. Control characters and bidirectional formatting characters become U+FFFD.
  private static func escape(_ text: String) -> String {
    if text.utf8.allSatisfy(standsForItself) { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}"..."\u{202E}", "\u{2066}"..."\u{2069}":
        escaped += "\u{FFFD}"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// Whether the byte needs no escaping, which is the case for all bytes of most names.
  private static func standsForItself(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "'"): false
    default: 0x20..<0x7F ~= byte
    }
  }

  /// A size for display: exact below 1,024 bytes, otherwise with one decimal.
  private static func size(_ bytes: Int64) -> String {
    if bytes < 1024 { return "\(bytes) B" }
    var value = bytes
    var unit = 0
    while value >= 1024 * 1024, unit < 4 {
      value /= 1024
      unit += 1
    }
    let tenths = value * 10 / 1024
    return "\(tenths / 10).\(tenths % 10) \(["KiB", "MiB", "GiB", "TiB", "PiB"][unit])"
  }
}
