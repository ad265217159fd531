import BlobHTTP
import Blobs
import Synchronization

/// The URLs to which a server has redirected PUTs. A server that redirects two names to one URL would replace the first
/// of the two files by the second.
final class RedirectedPuts: Sendable {
  /// Hashes of the URL of the redirect, and of the URL that it came from first. A million URLs would need much memory.
  private let origins = Mutex<[Int: Int]>([:])
  /// Most servers redirect no PUT, and then no URL is hashed.
  private let isEmpty = Atomic(true)
  /// A hundred thousand redirects need 4 MiB. Later ones are compared with these, and not remembered.
  private static let most = 1 << 17

  /// Records that the PUT of `first` is about to follow a redirect to `next`. Returns false, and records nothing, if the PUT of
  /// another URL was redirected there before.
  func follow(from first: HTTPURL, to next: HTTPURL) -> Bool {
    let (key, origin) = (Self.hash(next), Self.hash(first))
    isEmpty.store(false, ordering: .sequentiallyConsistent)
    return origins.withLock { origins in
      if let other = origins[key] { return other == origin }
      if origins.count < Self.most { origins[key] = origin }
      return true
    }
  }

  /// The redirect to `next` was not followed.
  func forget(_ next: HTTPURL) { origins.withLock { _ = $0.removeValue(forKey: Self.hash(next)) } }

  /// Whether the PUT of another URL was redirected to `url`.
  func isTaken(_ url: HTTPURL) -> Bool {
    if isEmpty.load(ordering: .sequentiallyConsistent) { return false }
    let own = Self.hash(url)
    return origins.withLock { $0[own] }.map { $0 != own } ?? false
  }

  private static func hash(_ url: HTTPURL) -> Int { url.normalized.withSingleSlashes.text.hashValue }
}

extension HTTPURL {
  /// This URL without its query and with one slash in place of several in a row, which many servers take for the same.
  fileprivate var withSingleSlashes: HTTPURL {
    let slash = UInt8(ascii: "/")
    var bytes: [UInt8] = []
    for byte in path.utf8 where byte != slash || bytes.last != slash { bytes.append(byte) }
    if bytes.count == path.utf8.count { return self }
    let place = description.utf8.dropLast(path.utf8.count)
    return HTTPURL(String(Substring(place)) + String(decoding: bytes, as: UTF8.self)) ?? self
  }
}

extension UploadContext {
  /// Throws if a PUT of `url` would replace a file whose PUT was redirected there.
  func checkRedirects(to url: HTTPURL) throws(UploadError) {
    guard server.knowledge.putAnswers.redirects.isTaken(url) else { return }
    throw UploadError(
      .giveUp, .file,
      "PUT \(url): not sent, since the server has redirected the PUT of another file there, which this one would replace",
      status: 409)
  }

  /// Throws if the PUT of `first`, which `response` redirects to `next`, would replace another file of this destination, or be
  /// replaced by it. The journal has each file before its first byte is sent, so one of two files finds the other.
  func checkRedirect(
    of first: HTTPURL, to next: HTTPURL, _ response: HTTPResponse
  ) async throws(UploadError) {
    let redirects = server.knowledge.putAnswers.redirects
    var isTaken = !redirects.follow(from: first, to: next)
    if !isTaken, let journal = server.journal, let entry {
      do {
        for place in Set([next.normalized, next.normalized.withSingleSlashes].map(\.description)) where !isTaken {
          isTaken = try await journal.hasOther(than: entry, at: place)
        }
      } catch {
        throw UploadError(journal: error)
      }
      if isTaken { redirects.forget(next) }
    }
    guard isTaken else { return }
    throw UploadError(
      .giveUp, .file,
      "PUT \(first): answered \(response.status) to \(next), where another file goes too: not followed, since one of the two "
        + "files would replace the other", status: 409)
  }
}
