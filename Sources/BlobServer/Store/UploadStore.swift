import BlobCrypto
import Blobs

/// Where the server keeps what arrives: finished files under their names, unfinished ones out of sight.
///
/// Methods block; `append`, `begin`, `item` and `open` only as long as a local file system does, the others belong on
/// a worker. Any thread may call. `ServerError.status` is what a client is told.
package protocol UploadStore: Sendable {
  /// What is published at `path`; nil when nothing is. Throws 403 where a symbolic link is in the way.
  func item(at path: ServedPath) throws(ServerError) -> StoredItem?

  /// The file at `path`, where another is to be published, and whether the store can publish one there. `path` nil: the new
  /// file gets a new name in `folder`. Throws 403 where a symbolic link is in the way, 409 where a file is.
  func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState

  /// A file's bytes, for reading in place. Throws 404 when there is no file.
  func open(_ path: ServedPath) throws(ServerError) -> OpenItem

  /// The names in a folder in the order of their bytes, without those that begin with a dot. Throws 404.
  func list(_ folder: ServedPath) throws(ServerError) -> [StoredEntry]

  /// Removes a published file. Throws 404, or 409 for a folder. `check` looks at the file that is about to be removed and
  /// throws to keep it; no other request replaces the file in between.
  func remove(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError)

  /// Takes bytes aside under a new id. Nothing of it outlives the process until it is saved or published.
  /// `length` is what will come, if known: 413 when the store may not hold so much.
  func begin(length: Int64?) throws(ServerError) -> any Reception

  /// Continues a saved upload behind its last byte. Throws 410 when its bytes are gone.
  func reopen(_ id: UploadID) throws(ServerError) -> any Reception

  /// Makes a reception outlive the process, or changes what is known of it; 413 when the store may not hold the length.
  /// From then on `load` finds it. A final upload
  /// has no reception; it claims its parts, or 409 when one is another's, 410 when one is gone. They live as long as it
  /// does.
  func save(_ record: UploadRecord) throws(ServerError)

  /// The final upload that has claimed a part; nil: none has.
  func claimant(of part: UploadID) -> UploadID?

  /// Runs `delete`, which ends the part, while no final upload can claim it. Returns the final upload that has claimed it
  /// already, where `delete` is not run.
  func unlessClaimed(
    _ part: UploadID, _ delete: () throws(ServerError) -> Void
  ) throws(ServerError) -> UploadID?

  /// The bytes of a saved final upload, from its parts, which must be whole and not be written any more; its length must
  /// be known. Parts are used up on the way. After a throw, or a kill, it goes on where it was; 410: a part is gone.
  func join(_ record: UploadRecord) throws(ServerError) -> any Reception

  /// The upload as the store remembers it; nil: the store never had it, or has forgotten it. Throws 410 for a finished upload whose file is not
  /// there any more, or is another one.
  func load(_ id: UploadID) throws(ServerError) -> SavedUpload?

  /// Whether the file that a finished upload was published as is still there, and no other one in its place; of a part,
  /// that of its final upload, which may not be published yet.
  func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool

  /// Of all the bytes of `reception`, which are read for it. Throws 503 after `interrupt`.
  func digests(
    of reception: any Reception, _ algorithms: [Digest.Algorithm]
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]]

  /// Of all the bytes of a published file, which are read for it. nil: `isWanted`, which is asked now and then while they
  /// are read, has said that nobody waits for it any more. Throws 503 after `interrupt`.
  func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]?

  /// Shows the bytes of `reception` under the record's target, whole and durable, or not at all.
  ///
  /// An existing name keeps its bytes unless the record says that they are replaced: equal bytes count as published,
  /// others throw 409. `.mustBeNew`, and `.replaceVersion` where another version is there, throw 412. Either ends the
  /// upload. After any other throw it can be tried again.
  /// A saved upload is remembered as finished until it expires, also over a kill at any instant.
  func publish(_ reception: any Reception, _ record: UploadRecord, isSaved: Bool) throws(ServerError) -> Publication

  /// Saved uploads that are not finished.
  var unfinished: Int { get }

  /// Forgets a saved upload and deletes its bytes, with those of its parts.
  func delete(_ id: UploadID)

  /// Deletes what has had no new byte for too long, `isBusy` ones aside, and returns their ids.
  func expire(isBusy: (UploadID) -> Bool) -> [UploadID]

  /// Before an upload is refused because the store may not hold so much, `submit` is called with work that looks for room
  /// that the store does not know of. It must run that work once, on another thread, after `expire`. Until the work has
  /// ended the store may refuse with 507 instead of 413.
  func onShortage(_ submit: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void)

  /// Saved uploads that have all their bytes and were not published, because the server was killed in between.
  func complete() -> [UploadRecord]

  /// Ends comparisons that are under way, with 503; what they compared stays resumable.
  func interrupt()

  /// Lets go of the folder, for another store. Nothing may be called after.
  func close()
}

extension UploadStore {
  /// Removes a published file, whatever version it is. Throws 404, or 409 for a folder.
  package func remove(_ path: ServedPath) throws(ServerError) { try remove(path) { (_) throws(ServerError) in } }
}

/// Bytes that are taken aside until they are published. One writer at a time; any thread.
package protocol Reception: AnyObject, Sendable {
  var id: UploadID { get }
  /// Bytes held.
  var length: Int64 { get }
  /// Adds at the end. After a throw (413 more than the store may hold, 507 the disk is full) what was written stays.
  func append(_ piece: BodyPiece) throws(ServerError)
  /// What comes from here on is on probation: until `keep`, the next store to open the place drops it.
  func hold() throws(ServerError)
  /// What was on probation is held like all else. After a throw it still is on probation.
  func keep() throws(ServerError)
  /// Deletes what is on probation. After a throw it is still there.
  func drop() throws(ServerError)
  /// Deletes the bytes and gives back the room that was kept for them.
  func discard()
}

/// What is at a path.
package struct StoredItem: Sendable, Hashable {
  package var isFolder: Bool
  package var length: Int64
  /// Nanoseconds since 1970, as far as 64 bits reach.
  package var modified: Int64
  /// Seconds since 1970, rounded down.
  package var modifiedSeconds: Int64
  /// When its bytes, its name or its rights changed last, which no client can choose. Nanoseconds since 1970.
  package var changed: Int64
  /// Tells one file from the next at the same path.
  package var inode: UInt64

  /// A strong validator: other bytes under the same name are another inode or another time of change. The modification
  /// time would not do, since clients choose it and inodes are used again. RFC 9110 §8.8.3.
  package var etag: String {
    "\"\(String(length, radix: 16))-\(String(changed, radix: 16))-\(String(inode, radix: 16))\""
  }
}

/// An open file; its descriptor lives as long as this does.
package struct OpenItem: Sendable {
  package var item: StoredItem
  package var file: Descriptor
}

/// A line of a listing.
package struct StoredEntry: Sendable {
  package var name: BytePath
  package var item: StoredItem
}

/// How a publication ended.
package struct Publication: Sendable {
  package enum Outcome: Sendable { case created, replaced, same }
  package var outcome: Outcome
  package var item: StoredItem
  /// The file has the modification time that its record asks for.
  package var hasModificationTime = false
}
