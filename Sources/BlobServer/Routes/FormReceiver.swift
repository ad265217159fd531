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
  private let entries = FormEntries()

  /// Belongs to the event thread of the connection.
  private struct State: @unchecked Sendable {
    let parser: MultipartParser
    var file: (reception: any Reception, record: UploadRecord, entry: Int)?
    /// Complete files that wait for the end of the form.
    var held: [(record: UploadRecord, entry: Int)] = []
    /// The value of a field `mtime`, which applies to the next file, truncated to 64 bytes.
    var time: [UInt8]?
    /// The current part is the field `mtime`.
    var isInTime = false
    /// false within a file field that was left empty.
    var mayHaveBytes = true
  }
  /// The maximum number of files of one form. The response has an entry for each of them.
  static let mostFiles = 1000
  private let state: Mutex<State>

  init(
    _ boundary: [UInt8], _ folder: ServedPath, _ existing: ExistingRule, _ answer: FormResponse,
    _ digests: BodyDigests?,
    _ call: Call
  ) {
    self.folder = folder
    self.existing = existing
    self.answer = answer
    self.digests = digests
    awaitsEnd = digests != nil || call.request.contentLength == nil
    head = call.headers
    service = call.service
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
    guard let entry = entries.begin(name, atMost: Self.mostFiles) else { return }
    do throws(ServerError) {
      let target = try folder.appending(name)
      try existing.admit(service.store.target(at: target, in: folder), at: target, length: nil)
      let reception = try service.store.begin(length: nil)
      let record = UploadRecord(reception.id, target: target, existing: existing, length: nil, modified: modified)
      state.file = (reception, record, entry)
    } catch {
      entries.end(entry, .failure(error))
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws(ServerError) {
    if !state.mayHaveBytes { throw ServerError(400, "a file in the form has no name") }
    if state.isInTime, let held = state.time { state.time = held + bytes.prefix(max(0, 64 - held.count)) }
    guard let (reception, _, entry) = state.file else { return }
    do throws(ServerError) {
      if let limit = service.options.maxSize, reception.length + Int64(bytes.count) > limit {
        throw ServerError(413, "an upload may have \(limit) bytes at most")
      }
      try reception.append(.bytes(bytes))
    } catch {
      state.file = nil
      entries.end(entry, .failure(error))
      service.workers.submit { reception.discard() }
    }
  }

  /// Closes the file's reception, which is reopened when the file is published: a form may have more files than a process
  /// may have open.
  private func finish(_ state: inout State) {
    guard let (_, record, entry) = state.file else { return }
    state.file = nil
    if awaitsEnd { return state.held.append((record, entry)) }
    service.workers.submit { [self] in publish(record, entry) }
  }

  private func publish(_ record: UploadRecord, _ entry: Int) {
    do throws(ServerError) {
      let reception = try service.store.reopen(record.id)
      entries.end(entry, .success((record, try service.store.publish(reception, record, isSaved: false))))
    } catch {
      service.store.delete(record.id)
      entries.end(entry, .failure(error))
    }
  }

  /// Publishes the waiting files after the form was found valid.
  private func publishHeld() {
    for (record, entry) in takeHeld() { publish(record, entry) }
  }

  private func takeHeld() -> [(record: UploadRecord, entry: Int)] {
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
      entries.whenAllHaveEnded { decided(.reply(answer.reply($0, leftOut: $1))) }
    }
  }

  func cut() {
    let file = state.withLock { state in
      defer { state.file = nil }
      return state.file
    }
    if let file { service.workers.submit { file.reception.discard() } }
    let held = takeHeld()
    if held.isEmpty { return }
    service.workers.submit { [service] in
      for (record, _) in held { service.store.delete(record.id) }
    }
  }
}

/// The results for the files of one form, in the order of the form.
final class FormEntries: Sendable {
  struct Entry: Sendable {
    let name: [UInt8]
    /// nil while the file is being received or published.
    var result: Result<(record: UploadRecord, publication: Publication), ServerError>?
  }
  private struct State {
    var entries: [Entry] = []
    /// The number of files above the limit.
    var leftOut = 0
    /// The number of files that are being received or published.
    var open = 0
    var waiting: (@Sendable (_ entries: [Entry], _ leftOut: Int) -> Void)?
  }
  private let state = Mutex(State())

  /// Adds an entry and returns its index; nil if there are already `limit` entries.
  func begin(_ name: [UInt8], atMost limit: Int) -> Int? {
    state.withLock { state in
      if state.entries.count == limit {
        state.leftOut += 1
        return nil
      }
      state.entries.append(Entry(name: name))
      state.open += 1
      return state.entries.count - 1
    }
  }

  func end(_ entry: Int, _ result: Result<(record: UploadRecord, publication: Publication), ServerError>) {
    state.withLock { state in
      state.entries[entry].result = result
      state.open -= 1
    }
    tell()
  }

  /// Calls `then` once, when all files have results. Call it when no more files can begin.
  func whenAllHaveEnded(_ then: @escaping @Sendable (_ entries: [Entry], _ leftOut: Int) -> Void) {
    state.withLock { $0.waiting = then }
    tell()
  }

  private func tell() {
    let ended = state.withLock { state -> State? in
      guard state.open == 0, state.waiting != nil else { return nil }
      defer { state.waiting = nil }
      return state
    }
    if let ended { ended.waiting?(ended.entries, ended.leftOut) }
  }
}
