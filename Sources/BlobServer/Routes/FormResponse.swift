import BlobHTTP
import Blobs

/// Builds the response to a form with the result for each file: a page for browsers, JSON for other clients.
struct FormResponse: Sendable {
  private let isForBrowser: Bool
  private let folder: ServedPath
  /// The folder's URL, relative to the request's URL.
  private let folderURL: String

  init(_ call: Call, _ folder: ServedPath) {
    folderURL = call.target.reference(to: folder.folderURL)
    isForBrowser = call.headers["Accept"]?.lowercased().contains("text/html") == true
    self.folder = folder
  }

  /// The status is that of the first file that failed. `leftOut`: the number of files above the limit, which were
  /// ignored.
  func reply(_ entries: [FormEntries.Entry], leftOut: Int) -> Reply {
    if entries.isEmpty { return Reply(400, text: "the form has no file") }
    let failures = entries.compactMap { entry in
      if case .failure(let error)? = entry.result { (entry, error) } else { nil }
    }
    let excess = leftOut > 0 ? "a form may bring \(entries.count) files at most; send these in another one" : nil
    let status = failures.first?.1.status ?? (leftOut > 0 ? 413 : nil)
    if !isForBrowser {
      let files = entries.map(json).joined(separator: ",")
      let more = excess.map { ",\"leftOut\":\(leftOut),\"error\":\(JSONText.quoted($0))" } ?? ""
      let isNew = entries.contains { (try? $0.result?.get())?.publication.outcome == .created }
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

  private func json(_ entry: FormEntries.Entry) -> String {
    let name = JSONText.quoted(BytePath(entry.name).description)
    switch entry.result {
    case .success((let record, let publication))?:
      let status = publication.outcome == .created ? 201 : 200
      let (url, etag) = (JSONText.quoted(record.target.url), JSONText.quoted(publication.item.etag))
      return
        "{\"name\":\(name),\"status\":\(status),\"url\":\(url),\"length\":\(publication.item.length),\"etag\":\(etag)}"
    case .failure(let error)?:
      return "{\"name\":\(name),\"status\":\(error.status),\"error\":\(JSONText.quoted(error.message))}"
    case nil: return "{\"name\":\(name)}"
    }
  }
}
