import BlobHTTP
import Blobs
import Synchronization

/// The credentials of a destination and the user's own fields. They can be read again after a 401: a token that is valid for an
/// hour may have been renewed in its file meanwhile.
final class Credentials: Sendable {
  /// As they were when the destination was made.
  let given: HTTPHeaders
  /// Reads them again from where they are kept, on a thread that may block; nil there: they cannot be read. nil: they are kept
  /// nowhere.
  let reread: (@Sendable () -> HTTPHeaders?)?
  private let latest: Mutex<(fields: HTTPHeaders, before: HTTPHeaders)>
  private let count = Atomic(0)

  init(_ given: HTTPHeaders, rereading reread: (@Sendable () -> HTTPHeaders?)? = nil) {
    self.given = given
    self.reread = reread
    latest = Mutex((given, [:]))
  }

  /// How often other ones were read.
  var version: Int { count.load(ordering: .acquiring) }

  /// Those that a request is sent with.
  var fields: HTTPHeaders { version == 0 ? given : latest.withLock { $0.fields } }

  /// Those, and the ones before them: a server may still repeat these.
  var known: HTTPHeaders {
    if version == 0 { return given }
    return latest.withLock { latest in
      var known = latest.fields
      for field in latest.before.fields { known.add(field.name, field.value) }
      return known
    }
  }

  /// Whether there are other ones than those of `version`, which the server did not take: reads them again, unless another
  /// request has done so. Credentials of another user are not taken, since they may lead to other files.
  func areRenewed(since version: Int) async -> Bool {
    if self.version != version { return true }
    guard let reread else { return false }
    let found = await Self.threads.runUntilCancelled { _ in reread() } ?? nil
    return latest.withLock { latest in
      if self.version != version { return true }
      guard let found, found != latest.fields,
        UploadDestination.account(of: found) == UploadDestination.account(of: given)
      else { return false }
      latest = (found, latest.fields)
      count.store(version + 1, ordering: .releasing)
      return true
    }
  }

  private static let threads = BlockingPool("fullbore-credentials", threads: 4, patience: .seconds(10))
}

extension HTTPHeaders {
  fileprivate static func != (a: HTTPHeaders, b: HTTPHeaders) -> Bool {
    !a.fields.elementsEqual(b.fields) { $0.name == $1.name && $0.value == $1.value }
  }
}
