import BlobUpload
import Blobs
import Synchronization

/// The large files that are on their way. Small ones, of which there are many, come and go without a lock.
final class LargeFiles: Sendable {
  private static let least: Int64 = 4 << 20
  private let files = Mutex<[ObjectIdentifier: PushedFile]>([:])

  func began(_ file: PushedFile) {
    if isLarge(file) { files.withLock { $0[ObjectIdentifier(file.progress)] = file } }
  }

  func ended(_ file: PushedFile) {
    if isLarge(file) { files.withLock { $0[ObjectIdentifier(file.progress)] = nil } }
  }

  /// Files whose last byte is handed to the connection, and for which the server's answer is waited for; empty where
  /// bytes of any are still to be sent.
  var waitingForAnswer: [BytePath] {
    files.withLock { files in
      for file in files.values {
        guard let length = file.length, file.progress.sent >= length else { return [] }
      }
      return files.values.map(\.relative)
    }
  }

  private func isLarge(_ file: PushedFile) -> Bool { file.length ?? .max > Self.least }
}
