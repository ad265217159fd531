import BlobUpload
import Blobs
import Synchronization

/// The large files in progress. Small files, of which there are many, are not tracked, to avoid the lock.
final class LargeFiles: Sendable {
  private static let least: Int64 = 4 << 20
  private let files = Mutex<[ObjectIdentifier: PushedFile]>([:])

  func began(_ file: PushedFile) {
    if isLarge(file) { files.withLock { $0[ObjectIdentifier(file.progress)] = file } }
  }

  func ended(_ file: PushedFile) {
    if isLarge(file) { files.withLock { $0[ObjectIdentifier(file.progress)] = nil } }
  }

  /// Files whose last byte was handed to the connection and that wait for the server's response; empty if any file
  /// still has bytes to send.
  var waitingForAnswer: [BytePath] {
    files.withLock { files in
      for file in files.values {
        guard let length = file.length, file.progress.sent >= length else { return [] }
      }
      return files.values.map(\.relative)
    }
  }

  /// Bytes of the files in progress that were handed to connections.
  var sentBytes: Int64 {
    files.withLock { $0.values.lazy.map { min($0.progress.sent, $0.length ?? .max) }.clampedSum }
  }

  private func isLarge(_ file: PushedFile) -> Bool { file.length ?? .max > Self.least }
}
