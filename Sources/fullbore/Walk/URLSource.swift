import BlobHTTP
import BlobUpload
import Blobs

/// A file at a URL that is to be sent on.
struct URLSource: Sendable, Hashable {
  let url: HTTPURL
  /// The last part of its path.
  let name: BytePath

  /// nil: this is no URL.
  init?(_ argument: BytePath) throws(UsageError) {
    guard Self.isURL(argument) else { return nil }
    let given = "source '\(shown(argument.withoutPassword))'"
    guard let text = String(validating: argument.bytes, as: UTF8.self), let url = HTTPURL(text) else {
      throw UsageError("\(given): this is no URL that can be read; user and password do not belong into it")
    }
    self.url = url
    name = BytePath(url.lastComponent).name
  }

  static func isURL(_ path: BytePath) -> Bool {
    ["http://", "https://"].contains { path.bytes.starts(with: $0.utf8) }
  }

  /// Who it is in the journal. A query may be a secret: there its digest stands for it.
  var identity: BytePath {
    guard let query = url.query else { return BytePath(url.text) }
    return BytePath("\(url)\(Self.hidden)\(Digest.hex(of: Array(query.utf8), .sha256).prefix(16))")
  }
  private static let hidden = "?#"

  /// As the journal has it; nil where a query is missing.
  init?(kept identity: BytePath) {
    guard let url = HTTPURL(identity.description), !identity.description.contains(Self.hidden) else { return nil }
    self.url = url
    name = BytePath(url.lastComponent).name
  }

  /// Neither empty nor one that leads elsewhere.
  var hasName: Bool { !name.isEmpty && name != "." && name != ".." }
}

extension PushRun {
  /// An item for what is at a URL now; nil where it cannot be read, which is reported. `transport` must not be the one
  /// that sends.
  func item(
    _ file: URLSource, as arrival: BytePath, over transport: any Transport, overwrites: Bool, _ limiter: RateLimiter?
  ) async -> UploadItem? {
    let remote = HTTPRangeSource(file.url, over: transport)
    let cancel = Cancellation()
    let found = await withTaskCancellationHandler {
      await asking.run { Result { () throws(BlobError) in try remote.info(cancel) } }
    } onCancel: {
      cancel.cancel()
    }
    switch found {
    case .success(let info):
      counters.found(length: info.length)
      let source: any BlobSource = limiter.map { ThrottledSource(remote, $0) } ?? remote
      let target = destination.target(
        arrival, length: info.length, contentType: ContentType.of(arrival), overwrite: overwrites)
      return UploadItem(source: source, info: info, identity: file.identity, target: target)
    case .failure(let error):
      if error.code == .cancelled { return nil }
      counters.filesFound.add(1, ordering: .relaxed)
      counters.failed(length: 0)
      report.failed(file.identity, error.message)
      return nil
    }
  }
}

extension ConnectionOptions {
  /// What sources at URLs are read over. One that cannot be asked twice holds a lane from the moment it is looked at:
  /// there are more than files under way and those that wait for their turn.
  func readingTransport(jobs: Int?) throws(UploadError) -> CurlTransport {
    CurlTransport(try transportOptions(lanes: (jobs ?? 64) + 16))
  }
}

private let asking = BlockingPool("ask-source", threads: 4, patience: .seconds(5))
