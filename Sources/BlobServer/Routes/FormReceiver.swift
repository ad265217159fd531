import BlobHTTP
import Synchronization

/// Receives the body of a form. A worker publishes each file as soon as it is complete. A file that fails does not
/// affect the others; the response reports it. If the validity of the form is known only at its end, no file is
/// published before.
final class FormReceiver: BodyReceiver {
  private let folder: ServedPath
  private let existing: ExistingRule
  private let answer: FormResponse
  private let digests: BodyDigests?
  /// Whether files are published only at the end of the form: it has a digest to verify, or may have trailers that lead
  /// to a refusal.
  private let awaitsEnd: Bool
  private let head: HTTPHeaders
  private let service: Service
  private let sender: Sender?
  private let entries: FormEntries

  /// A file that was received completely.
  private struct Complete {
    let id: UploadID
    let entry: Int
    let rule: ExistingRule
    let modified: ModificationTime?
  }

  /// Belongs to the event thread of the connection.
  private struct State: @unchecked Sendable {
    let parser: MultipartParser
    var file:
      (reception: any Reception, entry: Int, rule: ExistingRule, modified: ModificationTime?, meter: UploadMeter)?
    /// Files that wait for the end of the form.
    var held: [Complete] = []
    /// The value of a field `mtime`, which applies to the next file, truncated to 64 bytes.
    var time: [UInt8]?
    /// The current part is the field `mtime`.
    var isInTime = false
    /// false within a file field that was left empty.
    var mayHaveBytes = true
  }
  private let state: Mutex<State>

  init(
    _ boundary: [UInt8], _ folder: ServedPath, _ existing: ExistingRule, _ answer: FormResponse,
    _ digests: BodyDigests?,
    _ call: RoutedRequest
  ) {
    self.folder = folder
    self.existing = existing
    self.answer = answer
    self.digests = digests
    awaitsEnd = digests != nil || call.request.contentLength == nil
    head = call.headers
    service = call.service
    sender = call.sender
    entries = FormEntries(call.service.formBytes, urlSize: answer.urlSize)
    var limits = MultipartParser.Limits()
    limits.parts = .max  // parts that are not files use no memory; files are counted here
    state = Mutex(State(parser: MultipartParser(boundary: boundary, limits)))
  }

  var takesPipes: Bool { false }

  func take(_ piece: BodyPiece) throws(ServerError) {
    guard case .bytes(var bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
    digests?.take(piece)
    try state.withLock { (state) throws(ServerError) in
      while let event = try Self.next(state.parser, &bytes) {
        switch event {
        case .part(let head): try begin(head, &state)
        case .bytes(let bytes): try append(bytes, &state)
        case .end: finish(&state)
        }
      }
    }
  }

  private static func next(
    _ parser: MultipartParser, _ bytes: inout UnsafeRawBufferPointer
  ) throws(ServerError) -> MultipartParser.Event? {
    do throws(MultipartError) { return try parser.next(&bytes) } catch { throw ServerError(error) }
  }

  /// Begins a part. Fields that are not files are ignored, except `mtime`.
  private func begin(_ head: MultipartHead, _ state: inout State) throws(ServerError) {
    state.mayHaveBytes = head.fileName?.isEmpty != true
    state.isInTime = head.fileName == nil && head.name.elementsEqual("mtime".utf8)
    if state.isInTime { state.time = [] }
    guard let name = head.fileName, !name.isEmpty else { return }
    let modified = state.time.flatMap { ModificationTime($0) }
    state.time = nil
    // The rest of the form is still read, so that the client gets the response with the result of each file.
    guard let entry = try entries.begin(name) else { return }
    do throws(ServerError) {
      let target = try folder.appending(name)
      let found = try service.store.target(at: target, in: folder)
      let rule = existing.bound(to: found.item)
      try rule.admit(found, at: target, length: nil)
      let reception = try service.store.begin(.random(), for: target, length: nil, modified: modified)
      reception.expect(nil)
      service.counters.uploads.begun.add(1)
      let meter = service.counters.uploads.active.begin(target, length: nil, by: sender)
      state.file = (reception, entry, rule, modified, meter)
    } catch {
      entries.end(entry, .failure(error))
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws(ServerError) {
    if !state.mayHaveBytes { throw ServerError(400, "a file in the form has no name") }
    if state.isInTime, let held = state.time { state.time = held + bytes.prefix(max(0, 64 - held.count)) }
    guard let (reception, entry, _, _, meter) = state.file else { return }
    do throws(ServerError) {
      if let limit = service.options.maxSize, reception.length + Int64(bytes.count) > limit {
        throw ServerError.tooLarge(limit)
      }
      try reception.append(.bytes(bytes))
      meter.add(bytes.count)
    } catch {
      state.file = nil
      entries.end(entry, .failure(error))
      discard(reception, entry)
    }
  }

  /// Closes the file's reception, which is reopened when the file is published: a form may have more files than a process
  /// may have open.
  private func finish(_ state: inout State) {
    guard let (reception, entry, rule, modified, _) = state.file else { return }
    state.file = nil
    do throws(ServerError) {
      try reception.settle()
    } catch {
      entries.end(entry, .failure(error))
      return discard(reception, entry)
    }
    let file = Complete(id: reception.id, entry: entry, rule: rule, modified: modified)
    if awaitsEnd { return state.held.append(file) }
    service.workers.submit { [self] in publish(file) }
  }

  private func publish(_ file: Complete) {
    do throws(ServerError) {
      let target = try folder.appending(entries.name(of: file.entry))
      let record = UploadRecord(file.id, target: target, existing: file.rule, length: nil, modified: file.modified)
      let reception = try service.store.reopen(file.id)
      let publication = try service.store.publish(reception, record, isSaved: false)
      service.received(ReceivedFile(target, publication, by: sender))
      entries.end(file.entry, .success(publication))
    } catch {
      delete(file)
      entries.end(file.entry, .failure(error))
    }
  }

  /// Publishes the waiting files after the form was found valid.
  private func publishHeld() {
    for file in takeHeld() { publish(file) }
  }

  private func takeHeld() -> [Complete] {
    state.withLock { state in
      defer { state.held = [] }
      return state.held
    }
  }

  func end(_ trailers: HTTPHeaders) -> Plan {
    do throws(ServerError) {
      try state.withLock { (state) throws(ServerError) in
        do throws(MultipartError) { try state.parser.finish() } catch { throw ServerError(error) }
      }
      try BodyDigests.checkAnnounced(trailers, by: head, [.content, .representation])
      try digests?.check(trailers)
    } catch {
      cut()
      return .refuse(error)
    }
    if awaitsEnd { service.workers.submit { [self] in publishHeld() } }
    return .later { [entries, answer] decided in
      entries.whenAllHaveEnded { decided(.reply(answer.reply($0))) }
    }
  }

  func cut() {
    let file = state.withLock { state in
      defer { state.file = nil }
      return state.file
    }
    if let file { discard(file.reception, file.entry) }
    let held = takeHeld()
    if held.isEmpty { return }
    service.workers.submit { [self] in
      for file in held { delete(file) }
    }
  }

  private func discard(_ reception: any Reception, _ entry: Int) {
    countFailed(entry, received: reception.length)
    service.workers.submit { reception.discard() }
  }

  private func delete(_ file: Complete) {
    countFailed(file.entry, received: 0)
    service.store.delete(file.id)
  }

  private func countFailed(_ entry: Int, received: Int64) {
    let path = (try? folder.appending(entries.name(of: entry))) ?? folder
    service.counters.uploads.failed(at: path, received: received, length: nil)
  }
}
