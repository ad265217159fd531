import BlobHTTP
import Blobs

/// Builds the response to a form with the result for each file: a page for browsers, JSON for other clients.
struct FormResponse: Sendable {
  private let isForBrowser: Bool
  private let folder: ServedPath
  /// The folder's URL, relative to the request's URL.
  private let folderURL: String

  init(_ call: RoutedRequest, _ folder: ServedPath) {
    folderURL = call.target.reference(to: folder.folderURL)
    isForBrowser = call.headers["Accept"]?.lowercased().contains("text/html") == true
    self.folder = folder
  }

  /// The size of the folder's URL in the result of each file; 0 if that has no URL.
  var urlSize: Int {
    let size = folder.folderURL.utf8.count
    return size <= Self.longestURL ? size : 0
  }

  /// Without this limit, the path of a deep folder would be in the response a thousand times.
  private static let longestURL = 1024

  /// The status is that of the first file that failed.
  func reply(_ results: FormResults) -> Reply {
    var reply = reply(to: results)
    reply.permits = results.permits
    return reply
  }

  private func reply(to results: FormResults) -> Reply {
    let (entries, leftOut) = (results.entries, results.leftOut)
    if entries.isEmpty { return Reply(400, text: "the form has no file") }
    let failures = entries.compactMap { entry in
      if case .failure(let error)? = entry.result { (entry, error) } else { nil }
    }
    let excess = leftOut > 0 ? "a form may bring \(entries.count) files at most; send these in another one" : nil
    let status = failures.first?.1.status ?? (leftOut > 0 ? 413 : nil)
    if !isForBrowser {
      let folderURL = urlSize > 0 ? folder.folderURL : nil
      let files = entries.map { json($0, in: folderURL) }.joined(separator: ",")
      let more = excess.map { ",\"leftOut\":\(leftOut),\"error\":\(JSONText.quoted($0))" } ?? ""
      let isNew = entries.contains { (try? $0.result?.get())?.outcome == .created }
      return Reply(
        status ?? (isNew ? 201 : 200), ["Content-Type": "application/json"],
        body: .bytes(Array("{\"files\":[\(files)]\(more)}\n".utf8)))
    }
    // A redirect, so that reloading the page does not send the form again.
    guard let status else { return Reply(303, ["Location": folderURL], text: "all files have arrived") }
    var lines = failures.map { (name: BytePath($0.0.name).description, reason: $0.1.message) }
    if let excess { lines.append(("\(leftOut) more files", excess)) }
    return PageRoutes.problem(status, folder, at: folderURL, lines, published: entries.count - failures.count)
  }

  /// `folderURL`: the folder's URL, percent-encoded; nil: it is too long for the result.
  private func json(_ entry: FormEntries.Entry, in folderURL: String?) -> String {
    let name = JSONText.quoted(BytePath(entry.name).description)
    switch entry.result {
    case .success(let publication)?:
      let status = publication.outcome == .created ? 201 : 200
      let etag = publication.etag.map { ",\"etag\":\(JSONText.quoted($0))" } ?? ""
      let url = folderURL.map { ",\"url\":\(JSONText.quoted($0 + HTTPURL.encode(entry.name)))" } ?? ""
      return "{\"name\":\(name),\"status\":\(status)\(url),\"length\":\(publication.item.length)\(etag)}"
    case .failure(let error)?:
      return "{\"name\":\(name),\"status\":\(error.status),\"error\":\(JSONText.quoted(error.message))}"
    case nil: return "{\"name\":\(name)}"
    }
  }
}
