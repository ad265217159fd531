import BlobServer
import Blobs
import Synchronization

/// A kind of store, to be tested with every `StoreCheck`.
package struct StoreFixture: Sendable, CustomStringConvertible {
  /// Opens a store at one location. Opening it again after `close` restores the state of the previous store.
  package typealias Opener = @Sendable (_ expire: Duration, _ maxTotal: Int64?) throws -> any UploadStore

  package let description: String
  /// The abilities that the store does not have. Checks that need one are left out, once the store has said so, too.
  let lacks: Set<StoreFact>
  /// Makes an empty location for each call. Called on a thread that may block.
  let place: @Sendable () throws -> Opener

  package init(
    _ description: String, lacks: Set<StoreFact> = [], place: @escaping @Sendable () throws -> Opener
  ) {
    self.description = description
    self.lacks = lacks
    self.place = place
  }
}

/// A fact about a store that a check needs, and that not every store has.
package enum StoreFact: Sendable {
  case joining, receptionDigests
  /// A file and a folder exclude each other, and each folder of a path must be one.
  case folders
  /// A file that was opened keeps its bytes although it is replaced.
  case openVersions
  /// Any bytes but a slash and 0 may be a name.
  case anyNames
  /// The store can have a limit for all files.
  case limit
  /// The store shares its uploads with no other one.
  case solitude

  /// Whether the store's own value says that it lacks this; nil: the value says nothing about it.
  fileprivate func isMissing(in abilities: StoreAbilities) -> Bool? {
    switch self {
    case .joining: abilities.joining == nil
    case .receptionDigests: abilities.receptionDigests == nil
    case .solitude: abilities.claims != nil
    case .folders, .openVersions, .anyNames, .limit: nil
    }
  }
}

/// One requirement of `UploadStore`, checked for any store. A new store joins with one `StoreFixture`:
///
/// ```swift
/// @Test(arguments: StoreFixture.all, StoreCheck.all)
/// func conforms(_ fixture: StoreFixture, _ check: StoreCheck) async throws { try await check.run(fixture) }
/// ```
package struct StoreCheck: Sendable, CustomStringConvertible {
  package let description: String
  private let needs: Set<StoreFact>
  private let body: @Sendable (StoreCheckContext) throws -> Void

  private init(
    _ description: String, needs: Set<StoreFact> = [], _ body: @escaping @Sendable (StoreCheckContext) throws -> Void
  ) {
    self.description = description
    self.needs = needs
    self.body = body
  }

  /// Throws a `CheckFailure` if the check fails or does not end within `limit`. Runs on a thread that may block.
  package func run(_ fixture: StoreFixture, within limit: Duration = .seconds(180)) async throws {
    do {
      try await deadline(limit, "the check") { [body, needs] in
        try await Self.threads.run { () throws in
          let exam = StoreCheckContext(open: try fixture.place())
          defer { exam.close() }
          let lacks = needs.intersection(fixture.lacks)
          if lacks.isEmpty { return try body(exam) }
          let abilities = try exam.store().abilities
          for fact in lacks {
            try require(fact.isMissing(in: abilities) != false, "the store has what its fixture says it lacks: \(fact)")
          }
        }
      }
    } catch {
      throw CheckFailure("\(fixture): \(self): \(error)")
    }
  }

  private static let threads = BlockingPool("store-checks", threads: 8)

  package static let all = [
    StoreCheck("nothing is in a new place", nothingIsInANewPlace),
    StoreCheck("bytes of any number come back as they were published", publishesBytes),
    StoreCheck("nothing is seen before it is published", hidesWhatIsUnfinished),
    StoreCheck("names are bytes", needs: [.anyNames], takesNamesAsBytes),
    StoreCheck("equal bytes under the name count as published", meetsEqualBytes),
    StoreCheck("other bytes under the name are refused", refusesOtherBytes),
    StoreCheck("replacing leaves open files alone", needs: [.openVersions], replaces),
    StoreCheck("what must be new meets no name", keepsWhatMustBeNewAway),
    StoreCheck("of several at once, one is published", publishesOneOfMany),
    StoreCheck("folders and files do not take each other's names", needs: [.folders], tellsFoldersFromFiles),
    StoreCheck("a folder is listed in the order of bytes", lists),
    StoreCheck("what is removed is gone", removes),
    StoreCheck("a saved upload goes on where it stopped", goesOn),
    StoreCheck("a record comes back as it was saved last", keepsRecords),
    StoreCheck("digests are those of all bytes", needs: [.receptionDigests], computesDigests),
    StoreCheck("bytes on probation count once they are kept", keepsProbation),
    StoreCheck("bytes on probation go with the store", forgetsProbation),
    StoreCheck("what was not saved goes with the store", forgetsWhatWasNotSaved),
    StoreCheck("a finished upload is remembered", remembersFinished),
    StoreCheck("a deleted upload is forgotten, what it published is not", deletes),
    StoreCheck("what had no byte for too long expires, busy ones aside", expires),
    StoreCheck("what is complete and unpublished is told", tellsComplete),
    StoreCheck("parts are joined in their order", needs: [.joining], joinsParts),
    StoreCheck("joining goes on in another store", needs: [.joining], joinsOverARestart),
    StoreCheck("a part belongs to one final upload", needs: [.joining], claimsPartsOnce),
    StoreCheck("parts take the room of their bytes, joined or not", needs: [.joining, .limit], countsRoomOfParts),
    StoreCheck("a final upload and its parts expire together", needs: [.joining], expiresPartsTogether),
    StoreCheck("room is promised once and given back", needs: [.limit], countsRoom),
    StoreCheck("what is unfinished is counted", countsUnfinished),
    StoreCheck("a comparison that is interrupted can be made again", interrupts),
    StoreCheck("one store at a place", needs: [.solitude], isAlone),
  ]
}

/// The context of a running check: a location and the store that is open there.
final class StoreCheckContext: Sendable {
  private let opener: StoreFixture.Opener
  private let current = Mutex<(any UploadStore)?>(nil)

  init(open opener: @escaping StoreFixture.Opener) { self.opener = opener }

  /// Closes the open store and opens another one at the same location, as after a restart.
  func store(expire: Duration = .seconds(3600), maxTotal: Int64? = nil) throws -> any UploadStore {
    close()
    let store = try opener(expire, maxTotal)
    current.withLock { $0 = store }
    return store
  }

  /// Opens a second store while the first one is open.
  func second() throws -> any UploadStore { try opener(.seconds(3600), nil) }

  func close() {
    let store = current.withLock { current in
      defer { current = nil }
      return current
    }
    store?.close()
  }
}

extension UploadStore {
  /// The first thousand entries of a folder.
  func list(_ folder: ServedPath) throws -> [StoredEntry] {
    try list(folder, after: nil, atMost: 1000).entries
  }

  func list(_ folder: ServedPath, after start: BytePath?, atMost limit: Int) throws -> FolderPage {
    try ability(\.listing).list(folder, after: start, atMost: limit)
  }

  func remove(_ path: ServedPath) throws {
    try ability(\.removal).remove(path) { (_) throws(ServerError) in }
  }

  func ability<Ability>(_ ability: KeyPath<StoreAbilities, Ability?>) throws -> Ability {
    guard let found = abilities[keyPath: ability] else { throw CheckFailure("the store lacks \(Ability.self)") }
    return found
  }

  /// A reception for a file that is called like the upload.
  package func begin(length: Int64?) throws(ServerError) -> any Reception {
    let id = UploadID.random()
    return try begin(id, for: ServedPath(id.description.utf8), length: length, modified: nil)
  }

  /// A reception to which these bytes were appended in pieces.
  func receive(_ bytes: [UInt8], for name: String = "received", piece: Int = 100_000) throws -> any Reception {
    let reception = try begin(.random(), for: ServedPath(name.utf8), length: Int64(bytes.count), modified: nil)
    try reception.append(bytes, piece: piece)
    return reception
  }

  /// A saved upload of `length` bytes to `name`, of which `bytes` were received.
  func begin(_ name: String, _ bytes: [UInt8], length: Int64?) throws -> UploadRecord {
    let target = try ServedPath(name.utf8)
    let reception = try begin(.random(), for: target, length: length, modified: nil)
    let record = UploadRecord(reception.id, target: target, length: length)
    try save(record)
    try reception.append(bytes)
    return record
  }

  @discardableResult
  func publish(_ name: String, _ bytes: [UInt8], _ existing: ExistingRule = .keep) throws -> Publication {
    let reception = try receive(bytes, for: name)
    let target = try ServedPath(name.utf8)
    return try publish(
      reception, UploadRecord(reception.id, target: target, existing: existing, length: nil), isSaved: false)
  }

  /// The bytes published under the name; nil if there are none.
  func bytes(_ name: String) throws -> [UInt8]? {
    guard let item = try item(at: ServedPath(name.utf8)) else { return nil }
    let file = try open(ServedPath(name.utf8))
    try require(file.item == item, "the open file is \(file.item), asked it was \(item)")
    return try file.bytes()
  }

  func requireBytes(_ name: String, _ bytes: [UInt8]?) throws {
    let found = try self.bytes(name)
    try require(found == bytes, "\(name) has \(found?.count ?? -1) bytes, not the \(bytes?.count ?? -1) expected")
  }
}

extension Reception {
  /// Appends the bytes of a whole request.
  func append(_ bytes: [UInt8], piece: Int = 100_000) throws(ServerError) {
    expect(Int64(bytes.count))
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix(piece)
      // A closure such as `withUnsafeBytes` would lose the type of the thrown error.
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: part.count, alignment: 1)
      defer { copy.deallocate() }
      copy.copyBytes(from: part)
      try append(.bytes(UnsafeRawBufferPointer(copy)))
      rest = rest.dropFirst(part.count)
    }
    try settle()
  }
}

/// Requires that `body` throws a `ServerError` with this status.
func requireStatus(_ status: Int, _ what: String, _ body: () throws -> Void) throws {
  do {
    try body()
  } catch let error as ServerError {
    try require(error.status == status, "\(what): \(error.status) instead of \(status): \(error)")
    return
  }
  throw CheckFailure("\(what): nothing was thrown instead of \(status)")
}
