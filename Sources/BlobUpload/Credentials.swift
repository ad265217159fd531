import BlobHTTP
import Blobs
import Synchronization

/// The credentials of a destination and the user's own fields. They can be read again after a refusal, because a token that is
/// valid for an hour may have been renewed in its file.
final class Credentials: Sendable {
  /// The fields that the destination was created with.
  let given: HTTPHeaders
  /// Reads the fields again from their files, on a thread that may block. It returns nil if a file cannot be read. nil: the
  /// fields come from no file.
  let reread: (@Sendable () -> HTTPHeaders?)?
  /// Held while the fields are read again.
  private let turn = Mutex(())
  private let latest: Mutex<(fields: HTTPHeaders, before: HTTPHeaders)>
  private let count = Atomic(0)

  init(_ given: HTTPHeaders, rereading reread: (@Sendable () -> HTTPHeaders?)? = nil) {
    self.given = given
    self.reread = reread
    latest = Mutex((given, [:]))
  }

  /// The number of times that changed fields were read.
  var version: Int { count.load(ordering: .acquiring) }

  /// The fields to send with a request.
  var fields: HTTPHeaders { version == 0 ? given : latest.withLock { $0.fields } }

  /// The current fields and the previous ones, which a server may still repeat in a response.
  var known: HTTPHeaders {
    if version == 0 { return given }
    return latest.withLock { latest in
      var known = latest.fields
      for field in latest.before.fields { known.add(field.name, field.value) }
      return known
    }
  }

  /// Returns whether there are newer fields than those of `version`, which the server has refused. It reads them again
  /// unless another request has done so meanwhile: a token that is renewed by two at once may be valid for neither.
  /// Credentials of another user are ignored, since they may lead to other files.
  func areRenewed(since version: Int) async -> Bool {
    if self.version != version { return true }
    guard let reread else { return false }
    return await Self.threads.runUntilCancelled { [self] _ in
      turn.withLock { _ in self.version != version || replace(by: reread(), version) }
    } ?? (self.version != version)
  }

  private func replace(by found: HTTPHeaders?, _ version: Int) -> Bool {
    latest.withLock { latest in
      guard let found,
        !found.fields.elementsEqual(latest.fields.fields, by: { $0.name == $1.name && $0.value == $1.value }),
        UploadDestination.account(of: found) == UploadDestination.account(of: given)
      else { return false }
      latest = (found, latest.fields)
      count.store(version + 1, ordering: .releasing)
      return true
    }
  }

  private static let threads = BlockingPool("fullbore-credentials", threads: 4, patience: .seconds(10))
}

extension UploadDestination {
  /// The number of times that renewed credentials were read.
  package var credentialsVersion: Int { credentials.version }

  /// Returns whether there are newer credentials than those of `version`, and asks for them if there are none.
  package func areCredentialsRenewed(since version: Int) async -> Bool { await credentials.areRenewed(since: version) }
}
