import BlobCrypto
import BlobHTTP
import Blobs

/// Stores what the server receives: published files under their names, and unfinished uploads hidden from clients.
///
/// Methods block. `append`, `begin`, `item` and `open` block only as long as a local file system does; call the others
/// on a worker. Any thread may call. `ServerError.status` is the status for the client.
package protocol UploadStore: Sendable {
  /// The item published at `path`; nil if nothing is. Throws 403 if a component is a symbolic link.
  func item(at path: ServedPath) throws(ServerError) -> StoredItem?

  /// The file at `path`, where another one is to be published, and whether the store can publish there. `path` nil: the
  /// new file gets a new name in `folder`. Throws 403 if a component is a symbolic link, 409 if a component is a file.
  func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState

  /// Opens a file for reading. Throws 404 if it does not exist.
  func open(_ path: ServedPath) throws(ServerError) -> OpenItem

  /// The entries of a folder after the name `start` (nil: from the first one on), `limit` at most, sorted by the bytes
  /// of their names, without names that begin with a dot. Memory grows with `limit` alone. Throws 404.
  func list(_ folder: ServedPath, after start: BytePath?, atMost limit: Int) throws(ServerError) -> FolderPage

  /// The number of files in a folder whose names do not begin with a dot. Throws 404.
  func count(_ folder: ServedPath) throws(ServerError) -> Int

  /// Lists all files and folders below `folder`, which an archive gives the name `name`, without names that begin with a
  /// dot. Throws 403 if one of them cannot be read, 413 if there are too many, and 503 once `isWanted`, which is called
  /// now and then, is false, or after `interrupt`.
  func tree(_ folder: ServedPath, named name: String, while isWanted: () -> Bool) throws(ServerError) -> FolderTree

  /// Removes a published file. Throws 404, or 409 for a folder. `check` gets the file that is about to be removed and
  /// throws to keep it; no other request can replace the file in between.
  func remove(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError)

  /// Starts a reception under a new id. It does not survive the process until it is saved or published. `length` is the
  /// expected length, if known: throws 413 if that exceeds the quota, 507 if it exceeds what is left of it.
  func begin(length: Int64?) throws(ServerError) -> any Reception

  /// Continues a saved upload after its last byte. Throws 410 if its bytes are gone.
  func reopen(_ id: UploadID) throws(ServerError) -> any Reception

  /// Saves the record of a reception, so that it survives the process and `load` finds it, or updates the record.
  /// Throws 413 or 507 as `begin`. A final upload has no reception; it claims its parts. Throws 409 if a
  /// part is claimed by another upload, 410 if a part is gone. Claimed parts expire together with the final upload.
  func save(_ record: UploadRecord) throws(ServerError)

  /// The final upload that has claimed a part; nil: there is none.
  func claimant(of part: UploadID) -> UploadID?

  /// Runs `delete`, which deletes the part, while no final upload can claim it. If a final upload has already claimed
  /// it, `delete` is not run and the id of that upload is returned.
  func unlessClaimed(
    _ part: UploadID, _ delete: () throws(ServerError) -> Void
  ) throws(ServerError) -> UploadID?

  /// Joins the parts of a saved final upload, whose length must be known. The parts must be complete and must not be
  /// written any more; they are consumed in the process. After a throw or a kill, a new call continues. 410: a part is
  /// gone.
  func join(_ record: UploadRecord) throws(ServerError) -> any Reception

  /// Loads an upload; nil: it never existed or has been forgotten. Throws 410 for a finished upload whose file no
  /// longer exists or was replaced.
  func load(_ id: UploadID) throws(ServerError) -> SavedUpload?

  /// Whether the file that a finished upload was published as still exists and was not replaced. For a part, this
  /// refers to its final upload, which may not be published yet.
  func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool

  /// Computes digests of all bytes of `reception`, which it reads. Throws 503 after `interrupt`.
  func digests(
    of reception: any Reception, _ algorithms: [Digest.Algorithm]
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]]

  /// Computes a digest of a published file, which it reads completely. `fromDisk`: what memory has of the file is not used,
  /// as far as the system allows. Returns nil if `isWanted`, called now and then while reading, returns false because no
  /// client waits any more. Throws 503 after `interrupt`.
  func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, fromDisk: Bool, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]?

  /// Publishes the bytes of `reception` at the record's target, completely and synced to disk, or not at all.
  ///
  /// An existing file keeps its bytes unless the record's rule replaces it: with equal bytes the upload counts as
  /// published, otherwise this throws 409. The same holds for `.replaceFound` if another upload has brought the file
  /// since. `.mustBeNew`, and `.replaceVersion` with another version, throw 412. These errors end the upload. After any
  /// other error publishing can be tried again. A saved upload is remembered as finished until it expires, even if the
  /// server is killed at any instant.
  func publish(_ reception: any Reception, _ record: UploadRecord, isSaved: Bool) throws(ServerError) -> Publication

  /// Checks a complete upload that is to be published later, and syncs its bytes to disk. Throws as `publish` does. Returns
  /// whether its name has the same bytes already.
  @discardableResult
  func prepare(_ reception: any Reception, _ record: UploadRecord) throws(ServerError) -> Bool

  /// Publishes saved uploads as `publish` does, in this order, and so that all of them get their names or none does. They were
  /// prepared before. After a throw none has a name. If the server is killed, `begunGroups` has them at the next start, and
  /// those that have no names yet are published with `isResumed`.
  func publish(_ group: [PendingMember], isResumed: Bool) throws(ServerError) -> [Publication]

  /// The groups whose publication a killed server has begun, each in its order.
  func begunGroups() -> [[UploadID]]

  /// Whether the bytes of a saved upload have no name yet.
  func hasBytes(of id: UploadID) -> Bool

  /// Takes their names from those members of a group of `begunGroups` that have them, since the others cannot be published.
  /// Returns false if the disk has failed.
  func hideGroup(_ members: [UploadID]) -> Bool

  /// Forgets a group of `begunGroups`.
  func endGroup(_ members: [UploadID])

  /// How many more bytes can be stored, as far as disk and quota are concerned; nil: the system does not tell.
  var free: Int64? { get }

  /// Whether the limit for all files, and not the disk, is what `free` tells.
  var isBoundByLimit: Bool { get }

  /// Whether an upload was refused since the last call because of the limit for all files.
  func takeRefusal() -> Bool

  /// Why files cannot be served or received; nil: they can. Blocks as long as the file system does.
  var problem: String? { get }

  /// The number of saved uploads that are not finished.
  var unfinished: Int { get }

  /// How many of them were begun in this run, or reopened.
  var continued: Int { get }

  /// The saved uploads that are not finished, `most` at most, sorted by their paths. Parts of one file count as one.
  func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload]

  /// Deletes a saved upload with its bytes and those of its parts.
  func delete(_ id: UploadID)

  /// Deletes uploads that have received no byte for too long, except those for which `isBusy` is true, and returns
  /// their ids.
  func expire(isBusy: (UploadID) -> Bool) -> [UploadID]

  /// Sets `submit`, which is called before an upload is refused because of the quota, with work that looks for unknown
  /// free room. It must run that work once, on another thread, after `expire`. Until the work has ended, the store may
  /// refuse with `Retry-After`.
  func onShortage(_ submit: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void)

  /// Saved uploads that are complete but were not published, because the server was killed in between. An upload with
  /// all its bytes whose client has not said that it ends is not complete.
  func complete() -> [UploadRecord]

  /// Uses the folder or disk that has taken the place of the one that was opened, for example a card that was inserted
  /// again. Unfinished uploads of the old one are lost. As long as there is none that can be served, the store stays in the
  /// folder that was opened. Returns lines for the operator; empty: nothing has changed. Blocks as long as the file
  /// system does.
  func lookAgain() -> [String]

  /// Whether `interrupt` was called.
  var isInterrupted: Bool { get }

  /// Interrupts running comparisons, which then throw 503; their uploads stay resumable.
  func interrupt()

  /// Releases the folder for another store. Nothing may be called afterwards.
  func close()
}

extension UploadStore {
  /// Removes any version of a published file. Throws 404, or 409 for a folder.
  package func remove(_ path: ServedPath) throws(ServerError) { try remove(path) { (_) throws(ServerError) in } }
}

/// The stored bytes of an upload before publication. One writer at a time, on any thread.
package protocol Reception: AnyObject, Sendable {
  var id: UploadID { get }
  /// The number of stored bytes.
  var length: Int64 { get }
  /// Appends bytes. After a throw (413: larger than the quota; 507: no room is left) the bytes already written stay.
  func append(_ piece: BodyPiece) throws(ServerError)
  /// Makes all following bytes provisional: until `keep`, they are dropped when a store is next opened in the folder.
  func hold() throws(ServerError)
  /// Accepts the provisional bytes. After a throw they are still provisional.
  func keep() throws(ServerError)
  /// Deletes the provisional bytes. After a throw they still exist.
  func drop() throws(ServerError)
  /// Deletes the bytes and releases the reserved quota.
  func discard()
}

/// Properties of a file or folder at a path.
package struct StoredItem: Sendable, Hashable {
  package var isFolder: Bool
  package var length: Int64
  /// Modification time in nanoseconds since 1970, clamped to the range of Int64.
  package var modified: Int64
  /// Modification time in seconds since 1970, rounded down.
  package var modifiedSeconds: Int64
  /// Time of the last change of its bytes, name or permissions, which clients cannot choose. Nanoseconds since 1970.
  package var changed: Int64
  /// Distinguishes successive files at the same path.
  package var inode: UInt64

  /// A strong validator: different bytes under the same name have another inode or another change time. The
  /// modification time would not be enough, because clients can choose it and inode numbers are reused. RFC 9110
  /// §8.8.3.
  package var etag: String {
    "\"\(String(length, radix: 16))-\(String(changed, radix: 16))-\(String(inode, radix: 16))\""
  }
}

/// An open file. Its descriptor is open as long as this value exists.
package struct OpenItem: Sendable {
  package var item: StoredItem
  package var file: Descriptor
}

/// A part of a folder's entries.
package struct FolderPage: Sendable {
  package var entries: [StoredEntry]
  /// The name after which the next part begins; nil: this is the last one.
  package var next: BytePath?
  /// Whether this part begins with the first name.
  package var isFirst: Bool
}

/// An entry of a folder listing.
package struct StoredEntry: Sendable {
  package var name: BytePath
  package var item: StoredItem
}

/// The result of a publication.
package struct Publication: Sendable {
  package enum Outcome: Sendable { case created, replaced, same }
  package var outcome: Outcome
  package var item: StoredItem
  /// Whether the file has the modification time that its record requests.
  package var hasModificationTime = false
  /// The group that was published with this file; nil: the file was published alone, or in an earlier attempt.
  package var group: UploadGroup?
  /// The version of the file, for the client; nil: it may not know it.
  package var etag: String? { isConcealed ? nil : item.etag }
  private var isConcealed = false

  package init(outcome: Outcome, item: StoredItem, hasModificationTime: Bool = false) {
    (self.outcome, self.item, self.hasModificationTime) = (outcome, item, hasModificationTime)
  }

  /// The client learns of the file only that it has the bytes that it has sent.
  mutating func conceal() { (isConcealed, hasModificationTime) = (true, false) }
}
