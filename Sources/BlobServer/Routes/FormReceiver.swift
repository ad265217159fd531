import BlobHTTP
import Synchronization

/// The body of a form. A file is published, by a worker, as soon as it is whole; one that cannot be taken does not keep
/// the others away, and is told at the end.
final class FormReceiver: BodyReceiver {
  private let folder: ServedPath
  private let existing: ExistingRule
  private let answer: FormAnswer
  private let service: Service
  private let entries = FormEntries()

  /// Belongs to the event thread of its connection.
  private struct State: @unchecked Sendable {
    let parser: MultipartParser
    var file: (reception: any Reception, record: UploadRecord, entry: Int)?
    /// The value of a field `mtime`, which is for the next file, as far as it can be one.
    var time: [UInt8]?
    /// The bytes that come are those of `time`.
    var isInTime = false
    /// Of a file field that was left empty.
    var mayHaveBytes = true
  }
  private let state: Mutex<State>

  init(
    _ boundary: [UInt8], _ folder: ServedPath, _ existing: ExistingRule, _ answer: FormAnswer, _ service: Service
  ) {
    self.folder = folder
    self.existing = existing
    self.answer = answer
    self.service = service
    state = Mutex(State(parser: MultipartParser(boundary: boundary)))
  }

  var takesPipes: Bool { false }

  func take(_ piece: BodyPiece) throws(ServerError) {
    guard case .bytes(var bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
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

  /// Of a field that is no file nothing is kept, but for `mtime`.
  private func begin(_ head: MultipartHead, _ state: inout State) throws(ServerError) {
    state.mayHaveBytes = head.fileName?.isEmpty != true
    state.isInTime = head.fileName == nil && head.name.elementsEqual("mtime".utf8)
    if state.isInTime { state.time = [] }
    guard let name = head.fileName, !name.isEmpty else { return }
    let entry = entries.begin(name)
    let modified = state.time.flatMap { ModificationTime($0) }
    state.time = nil
    do throws(ServerError) {
      let target = try folder.appending(name)
      if let item = try service.store.item(at: target) { try existing.admit(item, at: target, length: nil) }
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

  private func finish(_ state: inout State) {
    guard let (reception, record, entry) = state.file else { return }
    state.file = nil
    service.workers.submit { [service, entries] in
      do throws(ServerError) {
        entries.end(entry, .success((record, try service.store.publish(reception, record, isSaved: false))))
      } catch {
        reception.discard()
        entries.end(entry, .failure(error))
      }
    }
  }

  func end(_ trailers: HTTPHeaders) -> Plan {
    do throws(MultipartError) {
      try state.withLock { (state) throws(MultipartError) in try state.parser.finish() }
    } catch {
      cut()
      return .refuse(ServerError(error))
    }
    return .later { [entries, answer] decided in
      entries.whenAllHaveEnded { decided(.reply(answer.reply($0))) }
    }
  }

  func cut() {
    let file = state.withLock { state in
      defer { state.file = nil }
      return state.file
    }
    if let file { service.workers.submit { file.reception.discard() } }
  }
}

/// What becomes of the files of one form, in the order in which they came.
final class FormEntries: Sendable {
  struct Entry: Sendable {
    let name: [UInt8]
    /// nil: it is being published.
    var result: Result<(record: UploadRecord, publication: Publication), ServerError>?
  }
  private struct State {
    var entries: [Entry] = []
    var waiting: (@Sendable ([Entry]) -> Void)?
  }
  private let state = Mutex(State())

  func begin(_ name: [UInt8]) -> Int {
    state.withLock { state in
      state.entries.append(Entry(name: name))
      return state.entries.count - 1
    }
  }

  func end(_ entry: Int, _ result: Result<(record: UploadRecord, publication: Publication), ServerError>) {
    state.withLock { $0.entries[entry].result = result }
    tell()
  }

  /// Once, when no more files begin.
  func whenAllHaveEnded(_ then: @escaping @Sendable ([Entry]) -> Void) {
    state.withLock { $0.waiting = then }
    tell()
  }

  private func tell() {
    let (then, entries) = state.withLock { state in
      let isOver = state.entries.allSatisfy { $0.result != nil }
      defer { if isOver { state.waiting = nil } }
      return (isOver ? state.waiting : nil, state.entries)
    }
    then?(entries)
  }
}
