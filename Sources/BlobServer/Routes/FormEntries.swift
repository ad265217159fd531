import Blobs
import Synchronization

/// The results for the files of one form, in the order of the form. The memory for one file is bounded, and so is the
/// sum over all forms, because a client may send a form as slowly as it likes, and never read the response.
final class FormEntries: Sendable {
  struct Entry: Sendable {
    /// The file's name. Of a name that is too long for a file, only the beginning.
    let name: [UInt8]
    /// nil while the file is being received or published.
    var result: Result<Publication, Failure>?
  }
  struct Failure: Error {
    let status: Int
    let message: String
  }
  private struct State {
    var entries: [Entry] = []
    /// The number of files above the limit.
    var leftOut = 0
    /// The number of files that are being received or published.
    var open = 0
    var waiting: (@Sendable (FormResults) -> Void)?
    var permits: [Allowance.Permit] = []
    /// Bytes of the permits that are not used yet.
    var room = 0

    mutating func reserve(_ count: Int, of allowance: Allowance) -> Bool {
      if count > room {
        guard let permit = allowance.take(FormEntries.block) else { return false }
        permits.append(permit)
        room += FormEntries.block
      }
      room -= count
      return true
    }
  }
  private let state = Mutex(State())
  private let allowance: Allowance
  /// The size of the folder's URL in the result of each file.
  private let urlSize: Int

  /// The maximum number of files of one form. The response has an entry for each of them.
  static let mostFiles = 1000
  /// The allowance is taken in pieces of this many bytes. No entry needs as many.
  private static let block = 4096
  /// The longest name of a file, in bytes.
  private static let longestName = 255
  private static let longestMessage = 512
  /// The bytes that an entry and its place in the response take, without the name, the folder's URL and an error
  /// message.
  private static let entrySize = 512

  /// `allowance`: bytes for the entries of all forms.
  init(_ allowance: Allowance, urlSize: Int) { (self.allowance, self.urlSize) = (allowance, urlSize) }

  /// Adds an entry and returns its index; nil if the form has too many files. Throws 503 if all forms together keep too
  /// much.
  func begin(_ name: [UInt8]) throws(ServerError) -> Int? {
    try state.withLock { (state) throws(ServerError) -> Int? in
      if state.entries.count == Self.mostFiles {
        state.leftOut += 1
        return nil
      }
      let isWhole = name.count <= Self.longestName
      let name = isWhole ? name : Array(name.prefix(Self.longestName)) + Array("…".utf8)
      // In the response, a byte of a name may take several.
      guard state.reserve(Self.entrySize + urlSize + 4 * name.count, of: allowance) else { throw Self.tooMuch }
      state.entries.append(Entry(name: name))
      state.open += 1
      return state.entries.count - 1
    }
  }

  private static var tooMuch: ServerError {
    var error = ServerError(503, "too many forms are on their way; try again in a moment")
    error.headers["Retry-After"] = "5"
    return error
  }

  func name(of entry: Int) -> [UInt8] { state.withLock { $0.entries[entry].name } }

  func end(_ entry: Int, _ result: Result<Publication, ServerError>) {
    state.withLock { state in
      state.entries[entry].result = result.mapError { error in
        var text = error.message
        if text.utf8.count > Self.longestMessage {
          text = String(decoding: text.utf8.prefix(Self.longestMessage), as: UTF8.self) + "…"
        }
        let isKept = state.reserve(2 * text.utf8.count, of: allowance)
        return Failure(status: error.status, message: isKept ? text : "the file was refused")
      }
      state.open -= 1
    }
    tell()
  }

  /// Calls `then` once, when all files have results. Call it when no more files can begin.
  func whenAllHaveEnded(_ then: @escaping @Sendable (FormResults) -> Void) {
    state.withLock { $0.waiting = then }
    tell()
  }

  private func tell() {
    let ended = state.withLock { state -> State? in
      guard state.open == 0, state.waiting != nil else { return nil }
      defer { state = State() }
      return state
    }
    guard let ended else { return }
    ended.waiting?(FormResults(entries: ended.entries, leftOut: ended.leftOut, permits: ended.permits))
  }
}

/// The results of a form that has ended.
struct FormResults: Sendable {
  let entries: [FormEntries.Entry]
  /// The number of files above the limit, which were ignored.
  let leftOut: Int
  /// For the memory of the entries and of the response.
  let permits: [Allowance.Permit]
}
