import BlobApple
import BlobHTTP
import Blobs
import Foundation
import Synchronization

/// A user who is signed in. Account and token are read together, so that no photo of one user goes with the token of another.
nonisolated struct Session: Sendable {
  var account: String
  var token: String

  /// nil: nobody is signed in. An app reads both from one item of the keychain that it shares with the extension. The
  /// extension runs while the phone is locked, so the item needs `kSecAttrAccessibleAfterFirstUnlock`.
  static var current: Session? { Session(account: "4711", token: "0123456789abcdef") }
}

/// The run that is under way.
nonisolated final class Run: Sendable {
  private let uploads = Mutex<PhotoUploads?>(nil)

  /// nil: the last run has not ended. Each run has a destination of its own, with the session of that moment.
  func begin(_ session: Session) -> PhotoUploads? {
    let folder = HTTPURL("https://photos.example/phone/")!
    let destination = PhotoJobDestination(folder, account: session.account) {
      ["Authorization": "Bearer \(session.token)"]
    }
    // An app that lists what was given up has the journal in the folder of its app group.
    let journal = BytePath(NSHomeDirectory() + "/Library/Application Support/photos.sqlite")
    let new = PhotoUploads(to: destination, journal: journal)
    return uploads.withLock { running in
      if running != nil { return nil }
      running = new
      return new
    }
  }

  func end() { uploads.withLock { $0 = nil } }
  func terminate() { uploads.withLock { $0?.terminate() } }
}
