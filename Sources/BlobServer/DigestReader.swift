import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// Reads published files to answer clients that ask for a digest. One reading answers all clients that ask for the same
/// digest of the same file, and it ends early once all of them have gone.
final class DigestReader: Sendable {
  /// A client that waits for a digest.
  struct Client: Sendable {
    /// Whether the client has closed the connection. Called on a reader's thread, never after `answer`.
    let hasGone: @Sendable () -> Bool
    /// Receives the value of `Repr-Digest`, or nil if the client has gone. Called once, on a reader's thread.
    let answer: @Sendable (Result<String?, ServerError>) -> Void
  }
  private struct Question: Hashable {
    let item: StoredItem
    let algorithm: Digest.Algorithm
  }

  private let store: any UploadStore
  let known = KnownDigests()
  private let waiting = Mutex<[Question: [Client]]>([:])
  /// Separate from the threads that publish files, so that uploads do not wait for a reading.
  private let shortReaders = Workers(threads: 2)
  /// Long files have threads of their own, so that short ones do not wait for them.
  private let longReaders = Workers(threads: 2)
  private static let longestShort: Int64 = 256 << 20

  init(_ store: any UploadStore) { self.store = store }

  /// Ends the threads, once all clients have their answers.
  func finish() {
    shortReaders.finish()
    longReaders.finish()
  }

  func ask(_ algorithm: Digest.Algorithm, of file: OpenItem, for client: Client) {
    let question = Question(item: file.item, algorithm: algorithm)
    let isFirst = waiting.withLock { waiting in
      defer { waiting[question, default: []].append(client) }
      return waiting[question] == nil
    }
    if !isFirst { return }
    let readers = file.item.length > Self.longestShort ? longReaders : shortReaders
    readers.submit { self.answer(question, from: file) }
  }

  private func answer(_ question: Question, from file: OpenItem) {
    let result: Result<String?, ServerError>
    do throws(ServerError) {
      guard let text = try text(question, from: file) else { return }
      result = .success(text)
    } catch {
      result = .failure(error)
    }
    for client in waiting.withLock({ $0.removeValue(forKey: question) ?? [] }) { client.answer(result) }
  }

  /// Returns nil if no client waits for the digest any more.
  private func text(_ question: Question, from file: OpenItem) throws(ServerError) -> String? {
    if !isWanted(question) { return nil }
    // Another request may have computed the digest while this one waited for a thread.
    if let text = known.text(question.algorithm, of: question.item) { return text }
    let digests = try store.required(\.digests, "compute digests")
    guard let value = try digests.digest(of: file, question.algorithm, fromDisk: false, while: { isWanted(question) })
    else { return nil }
    _ = known.remember([question.algorithm: value], of: question.item)
    return DigestField.text([question.algorithm: value], [question.algorithm])
  }

  /// Answers the clients that have gone, so that their connections end. Returns false if no client is left: then the
  /// entry is removed, and the next client that asks starts a new reading.
  private func isWanted(_ question: Question) -> Bool {
    let clients = waiting.withLock { $0[question] ?? [] }
    let gone = clients.indices.filter { clients[$0].hasGone() }
    if gone.isEmpty { return true }
    let isWanted = waiting.withLock { waiting in
      // Other threads only append clients meanwhile.
      for index in gone.reversed() { waiting[question]?.remove(at: index) }
      if waiting[question]?.isEmpty == true { waiting[question] = nil }
      return waiting[question] != nil
    }
    for index in gone { clients[index].answer(.success(nil)) }
    return isWanted
  }
}
