/// The record of an upload, as it is kept.
package struct KeptRecord: Sendable {
  package var record: UploadRecord
  package var isFinished: Bool
  /// The time of the last change by the clock of `RecordKeeping.now`, in nanoseconds since 1970.
  package var changed: Int64

  package init(record: UploadRecord, isFinished: Bool, changed: Int64) {
    (self.record, self.isFinished, self.changed) = (record, isFinished, changed)
  }
}

/// The intent of a server to begin a multipart upload in the bucket. It is kept before the request is sent, so that another
/// server, or a later run, finds what became of a request whose server was killed before it could note the answer.
package struct PartsIntent: Sendable {
  package var id: UploadID
  /// The name of the object, as the store has given it.
  package var object: String
  /// The time since it was kept, in nanoseconds.
  package var age: Int64

  package init(id: UploadID, object: String, age: Int64) { (self.id, self.object, self.age) = (id, object, age) }
}

extension PartsIntent {
  /// An intent that is kept while a list of the current ones is on its way to the records is younger than this.
  package static let grace: Int64 = 15_000_000_000
}

/// Which uploads are looked for.
package enum RecordKind: Sendable {
  /// There are notes of them, but no record, and the server that began them has ended.
  case unsaved
  /// They are not finished, and no living server holds the claim to them.
  case unclaimed
  /// They have not changed for this time in nanoseconds, or for less if no byte of them has come (`UploadRecord.lifetime`).
  case expired(Int64)
}

/// Keeps the records of uploads for a store that has their bytes elsewhere, and the notes of that store about the bytes.
///
/// If several servers share the records, each change names its fence: the number of the claim under which it is made. The
/// number grows whenever another server gets the claim. A change under an earlier number has no effect and throws
/// `ServerError.claimIsLost`, also if the server was stopped in between and has not noticed. A fence of nil is that of an
/// upload that this server has begun and of which nothing is kept yet. Methods block.
package protocol RecordKeeping: Sendable {
  /// nil: no other server uses the records.
  var claims: (any UploadClaiming)? { get }

  /// The present time by the clock that gives the records their times, in nanoseconds since 1970. May change a time on a disk.
  var now: Int64 { get }

  /// The fence of the claim that this server holds; nil: it holds none.
  func fence(of id: UploadID) -> Int64?

  /// nil: there is no record of the upload.
  func load(_ id: UploadID) throws(ServerError) -> KeptRecord?

  /// The notes of an upload, in their order.
  func notes(of id: UploadID) throws(ServerError) -> [String]

  /// Keeps the record of an upload that is not finished. Returns the fence of the upload.
  func save(_ record: UploadRecord, under fence: Int64?) throws(ServerError) -> Int64

  /// Appends a line, which has no line feed, to the notes of an upload. `number`: how many notes there are then. Returns the
  /// fence of the upload. `intent`: the one that the line fulfils, which is forgotten together with the change. If it was
  /// taken by another server, this throws `ServerError.claimIsLost`.
  func note(
    _ line: String, _ number: Int, for id: UploadID, under fence: Int64?, fulfilling intent: UploadID?
  ) throws(ServerError) -> Int64

  /// Keeps an intent of this server. `object`: the name of the object.
  func keep(_ intent: UploadID, of object: String) throws(ServerError)

  /// Takes the intents of servers that have ended, and those of this server that are older than `PartsIntent.grace` and not
  /// in `current`. From then on they cannot be fulfilled. Returns them and the ones that this server has taken earlier; if
  /// there are very many, a later call returns the others.
  func takeIntents(except current: Set<UploadID>) throws(ServerError) -> [PartsIntent]

  /// The objects of the intents of other servers that may still be fulfilled.
  func objectsOfOthers() throws(ServerError) -> Set<String>

  /// Whether a note of any upload contains the text.
  func hasNote(with text: String) throws(ServerError) -> Bool

  /// Forgets intents. If that fails, they are taken again later.
  func forget(_ intents: [UploadID])

  /// Throws `ServerError.claimIsLost` if another server has got the claim, or has finished or deleted the upload. `isSaved`: a
  /// record of the upload was saved.
  func check(_ id: UploadID, isSaved: Bool, under fence: Int64?) throws(ServerError)

  /// Gives the claim up, since it is not known what of the last change was stored. The next claim begins with what is stored.
  func drop(_ id: UploadID, under fence: Int64?)

  /// Keeps the record of a finished upload, and deletes its notes.
  func finish(_ record: UploadRecord, under fence: Int64?) throws(ServerError)

  /// Deletes the record of an upload. Its notes stay. Returns false, without effect, if another server has got the claim.
  func deleteRecord(_ id: UploadID, under fence: Int64?) -> Bool

  /// Deletes the notes of an upload that has no record any more, or never had one.
  func delete(_ id: UploadID)

  /// The ids of the uploads of each kind. Each record is read once for all of them. If there are very many, a later call
  /// returns the others.
  func ids(_ kinds: [RecordKind]) throws(ServerError) -> [Set<UploadID>]

  /// How many uploads of all servers are not finished. Does not block. nil: the store counts them.
  var unfinished: Int? { get }

  /// Why nothing can be kept; nil: it can.
  var problem: String? { get }

  /// Does what is due from time to time. Blocks.
  func tidy()

  /// Lines for the operator that were not taken yet. Does not block.
  func takeNotices() -> [String]

  /// Releases the claims, and the records for another server.
  func close()
}

extension RecordKeeping {
  /// The ids of such uploads. If there are very many, a later call returns the others.
  package func ids(_ kind: RecordKind) throws(ServerError) -> Set<UploadID> { try ids([kind])[0] }
}

extension UploadRecord {
  /// Throws 431 if the record is larger than one may be.
  package func checkSize() throws(ServerError) {
    if text.utf8.count <= Folder.largestRecord { return }
    throw ServerError(431, "what the request says of the upload takes more than \(Folder.largestRecord) bytes")
  }
}
