import BlobHTTP
import BlobServer
import BlobUpload
import Blobs
import Synchronization

/// The multipart uploads that servers were about to begin, and the ends of those that no record names.
///
/// An intent is kept before `CreateMultipartUpload` is sent, and forgotten together with the note of its result. If there is
/// no such note, because the server was killed or the answer was lost, a later `sweep` looks in the bucket's list for a
/// multipart upload of that object which began after the intent, and ends it. The list tells only the name and the time of
/// an upload, so one of another program is never ended unless it began within `window` after an intent for the same name.
final class S3Intents: Sendable {
  private struct Current {
    var object: String
    /// The multipart upload, of which it is not known whether a note names it; nil: it is not known, or is being begun.
    var session: UploadSession?
    /// Whether the request that began it has ended without a note of its result.
    var isOver = false
  }
  private struct State {
    /// The intents of this run that are neither fulfilled nor taken.
    var current: [UploadID: Current] = [:]
    /// Whether the bucket's server refused its list last.
    var isRefused = false
    var notices: [String] = []
  }
  private let bucket: S3Bucket
  private let records: any RecordKeeping
  /// In nanoseconds. After this time, no request of a server that was killed is still on its way.
  private let window: Int64
  private let state = Mutex(State())

  /// `expiry`: of uploads, in nanoseconds.
  init(_ bucket: S3Bucket, _ records: any RecordKeeping, expiry: Int64) {
    (self.bucket, self.records) = (bucket, records)
    window = min(expiry, 600_000_000_000)
  }

  /// Begins a multipart upload. The note of the session must fulfil the intent.
  func begin(_ target: UploadTarget) throws(ServerError) -> (session: UploadSession, intent: UploadID) {
    let (id, object) = (UploadID.random(), bucket.name(of: target.url))
    state.withLock { $0.current[id] = Current(object: object) }
    do throws(ServerError) { try records.keep(id, of: object) } catch {
      end(id, nil)
      throw error
    }
    let request = bucket.start { s3, context async throws(UploadError) in try await s3.beginParts(of: target, context) }
    do throws(UploadError) { return (bucket.shared(try request.value(), of: target), id) } catch {
      if error.hasBegunNothing {
        fulfil(id)
        records.forget([id])
      } else {
        end(id, nil)
      }
      throw ServerError(refusing: target.path, error) ?? ServerError(storing: error)
    }
  }

  /// Call when a note names the session.
  func fulfil(_ id: UploadID) { state.withLock { $0.current[id] = nil } }

  /// Call when it is not known what was begun (`session` nil), or whether a note names it.
  func end(_ id: UploadID, _ session: UploadSession?) {
    state.withLock { state in
      state.current[id]?.session = session
      state.current[id]?.isOver = true
    }
  }

  /// Lines for the operator that were not taken yet.
  func takeNotices() -> [String] {
    state.withLock { state in
      defer { state.notices = [] }
      return state.notices
    }
  }

  // MARK: Sweeping

  /// Ends what was begun and is named by no note. Blocks. What cannot be done now is done by a later call, or by another
  /// server.
  func sweep() {
    let running = state.withLock { state in Set(state.current.filter { !$0.value.isOver }.keys) }
    let start = ContinuousClock.now
    guard let taken = try? records.takeIntents(except: running), !taken.isEmpty else { return }
    var known: [(id: UploadID, session: UploadSession)] = []
    state.withLock { state in
      for intent in taken {
        if let session = state.current.removeValue(forKey: intent.id)?.session { known.append((intent.id, session)) }
      }
    }
    for (id, session) in known {
      do throws(ServerError) {
        if try !isNamed(session.state["id"] ?? "") {
          try bucket.wait { s3, context async throws(UploadError) in try await s3.abort(session, context) }
        }
        records.forget([id])
      } catch {
        // The list shows it to a later sweep.
      }
    }
    let others = taken.filter { intent in !known.contains { $0.id == intent.id } }
    for (object, intents) in Dictionary(grouping: others, by: \.object) {
      if (try? end(intents, of: object, since: start)) != nil {
        records.forget(intents.filter { $0.age > window }.map(\.id))
      }
    }
  }

  /// Ends the multipart uploads of an object that these intents may have begun. `start`: when the ages of the intents were
  /// asked for.
  private func end(_ intents: [PartsIntent], of object: String, since start: ContinuousClock.Instant)
    throws(ServerError)
  {
    guard let url = bucket.url(named: object), let listed = try list(url) else { return }
    let passed = (ContinuousClock.now - start).nanoseconds
    let begun = listed.filter { upload in
      guard let age = upload.age else { return false }
      return intents.contains { intent in
        // The server tells whole seconds.
        let oldest = intent.age.addingClamped(passed) / 1_000_000_000 + 2
        return oldest.subtractingClamped(window / 1_000_000_000 + 2)...oldest ~= age
      }
    }
    if begun.isEmpty { return }
    // A server that is just beginning an upload of the object has an intent until a note names that. So the intents are read
    // after the list and before the notes.
    var running = Set(state.withLock { state in state.current.values.map(\.object) })
    running.formUnion(try records.objectsOfOthers())
    if running.contains(object) { throw ServerError(503, "\(object) is being uploaded") }
    for upload in begun where try !isNamed(upload.id) {
      try bucket.wait { s3, context async throws(UploadError) in try await s3.delete(upload, context) }
    }
  }

  /// nil: the bucket's server does not list uploads.
  private func list(_ object: HTTPURL) throws(ServerError) -> [OrphanedUpload]? {
    let request = bucket.start { s3, context async throws(UploadError) in
      try await s3.unfinished(of: object, context)
    }
    do throws(UploadError) {
      let found = try request.value()
      state.withLock { $0.isRefused = false }
      return found
    } catch {
      guard let status = error.status, [400, 403, 404, 405, 501].contains(status) else {
        throw ServerError(storing: error)
      }
      let isNew = state.withLock { state in
        defer { state.isRefused = true }
        return !state.isRefused
      }
      if isNew {
        let line =
          "the bucket does not list its unfinished multipart uploads (\(error.message)), so one that a killed server has "
          + "begun stays there: let the key list them (s3:ListBucketMultipartUploads), or give the bucket a rule that ends them"
        state.withLock { $0.notices.append(line) }
      }
      return nil
    }
  }

  private func isNamed(_ id: String) throws(ServerError) -> Bool {
    // As it is in the JSON text of a note.
    let member = JSONColumn.encode(["id": id])
    return try records.hasNote(with: String(member.dropFirst().dropLast()))
  }
}

extension UploadError {
  /// Whether the request was refused, or was not sent.
  fileprivate var hasBegunNothing: Bool {
    if let status { return 300..<500 ~= status || status == 501 || status == 503 }
    guard let error = cause as? TransportError else { return false }
    return [.resolve, .connect].contains(error.code)
  }
}
