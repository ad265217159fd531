import BlobHTTP
import Blobs

/// The file that an upload with `overwrite` replaces. Requests name it, so that a request that something on the way holds
/// back, and delivers late, does not replace the file of a later upload.
package enum ReplacedFile: Sendable, Hashable {
  /// The server does not tell: whatever is there is replaced.
  case unknown
  /// A file has the name, and the server does not tell its version: whatever is there is replaced.
  case unversioned
  /// No file has the name.
  case nothing
  /// The file with this strong ETag. RFC 9110 §8.8.3.
  case version(String)

  /// From the response to HEAD for the file. Throws `refusal`, the error for that response, if the server may answer another
  /// time.
  init(_ response: HTTPResponse, or refusal: @autoclosure () -> UploadError) throws(UploadError) {
    switch response.status {
    case 404, 410: self = .nothing
    case 200..<300:
      if let tag = response.headers["ETag"], tag.isStrongTag { self = .version(tag) } else { self = .unversioned }
    default:
      self = .unknown
      let error = refusal()
      // A server that responds 500 may only not know the method.
      if case .retry = error.recovery, response.status != 500 { throw error }
    }
  }
}

extension ReplacedFile {
  /// Whether a request can name the file, so that it replaces no other one.
  var isNamed: Bool {
    switch self {
    case .nothing, .version: true
    case .unknown, .unversioned: false
    }
  }
}

extension String {
  /// Whether this is a strong ETag of a length that fits into a request.
  fileprivate var isStrongTag: Bool { utf8.count > 1 && utf8.count <= 512 && hasPrefix("\"") && hasSuffix("\"") }
}

/// A protocol whose requests can name the file that they replace.
protocol ReplacingProtocol: UploadProtocol {
  /// Asks which file is there now.
  func replacedFile(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> ReplacedFile
}

extension ReplacingProtocol {
  func replacedFile(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> ReplacedFile {
    try await with.replacedFile(at: url)
  }
}

extension UploadContext {
  /// Asks by HEAD which file is at `url`.
  func replacedFile(at url: HTTPURL) async throws(UploadError) -> ReplacedFile {
    var head = HTTPRequest("HEAD", url)
    do throws(UploadError) {
      let response = try await send(following: &head)
      return try ReplacedFile(response, or: UploadError(head, response))
    } catch {
      // The request that replaces the file gets such a redirect too, and reports it.
      if let status = error.status, 300..<400 ~= status { return .unknown }
      throw error
    }
  }
}

/// Asks before each creation of one upload which file it replaces, and decides what follows if that file has changed before
/// the upload could replace it.
struct Replacement {
  /// Maximum number of refusals after which the upload is tried again at once: other clients may change the file each time.
  private static let most = 3

  /// The answer to the last question; nil: none was asked.
  private var named: ReplacedFile?
  private var refusals = 0
  /// The server has refused the file that was named last.
  private var isRefused = false

  /// The file that `target` is about to replace, if it may replace one.
  mutating func file(
    at target: UploadTarget, _ uploadProtocol: any UploadProtocol, _ with: UploadContext
  ) async throws(UploadError) -> ReplacedFile {
    guard target.overwrite, let replacing = uploadProtocol as? any ReplacingProtocol,
      !with.server.knowledge.overwritten.refusesConditions.load(ordering: .relaxed)
    else {
      named = nil
      return .unknown
    }
    let found = try await replacing.replacedFile(at: target.url, with)
    // The server does not compare files with what it tells of them.
    let isUseless = isRefused && found == named
    isRefused = false
    named = isUseless ? .unknown : found
    return named ?? .unknown
  }

  /// Whether `error` says that the file has changed, or that the server does not know conditions, so that the upload is to be
  /// created again at once. `isCreated`: the error concerns an upload that may have been created by an earlier run. Throws
  /// the final error if this was so too often.
  mutating func isOutdated(
    _ error: UploadError, isCreated: Bool, _ target: UploadTarget, _ with: UploadContext
  ) throws(UploadError) -> Bool {
    guard target.overwrite, let status = error.status, [412, 501].contains(status) else { return false }
    let isNamed = named?.isNamed ?? false
    if status == 501 {
      guard isNamed, !isCreated else { return false }
      with.server.knowledge.overwritten.refusesConditions.store(true, ordering: .relaxed)
      return true
    }
    guard isNamed || isCreated else { return false }
    refusals += 1
    isRefused = true
    guard refusals > Self.most else { return true }
    // The user has given --overwrite already, which is the advice for the status.
    var last = error.final
    last.status = nil
    last.message += "; the file there has changed each time that this one was to replace it"
    throw last
  }
}
