/// Stores what the server receives: published files under their names, and unfinished uploads hidden from clients.
///
/// A store has all abilities that receiving needs. `abilities` says which others it has, and the routes that need another
/// one answer that the store does not have it.
///
/// Methods block. Unless `abilities.waitsForNetwork`, `append`, `begin`, `item` and `open` block only as long as a local
/// file system does; call the others on a worker. Any thread may call. `ServerError.status` is the status for the client.
package protocol UploadStore: PublishedFiles, UploadBytes, UploadRecords, StoreRoom, StoreOperation {
  /// The abilities that not every store has. The value does not change.
  var abilities: StoreAbilities { get }
}

/// Reads published files.
package protocol PublishedFiles: Sendable {
  /// The item published at `path`; nil if nothing is. Throws 403 if a component is a symbolic link.
  func item(at path: ServedPath) throws(ServerError) -> StoredItem?

  /// The file at `path`, where another one is to be published, and whether the store can publish there. `path` nil: the
  /// new file gets a new name in `folder`. Throws 403 if a component is a symbolic link, 409 if a component is a file.
  func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState

  /// Opens a file for reading. Throws 404 if it does not exist.
  func open(_ path: ServedPath) throws(ServerError) -> OpenItem
}

/// Stores the bytes of uploads, and publishes them.
package protocol UploadBytes: Sendable {
  /// Starts a reception of a file that is to be published at `target`. It does not survive the process until its record is
  /// saved or it is published. `id` is a new one. `length` is the expected length, if known: throws 413 if that exceeds the
  /// quota, 507 if it exceeds what is left of it. `modified`: the modification time that the file is to have, as its record
  /// will say.
  func begin(
    _ id: UploadID, for target: ServedPath, length: Int64?, modified: ModificationTime?
  ) throws(ServerError) -> any Reception

  /// Continues a saved upload after its last safe byte. Throws 410 if its bytes are gone.
  func reopen(_ id: UploadID) throws(ServerError) -> any Reception

  /// Publishes the bytes of `reception` at the record's target, completely and synced to disk, or not at all.
  ///
  /// An existing file keeps its bytes unless the record's rule replaces it: with equal bytes the upload counts as
  /// published, otherwise this throws 409. The same holds for `.replaceFound` if another upload has brought the file
  /// since. `.mustBeNew`, and `.replaceVersion` with another version, throw 412. These errors end the upload. After any
  /// other error publishing can be tried again. A saved upload is remembered as finished until it expires, even if the
  /// server is killed at any instant.
  func publish(_ reception: any Reception, _ record: UploadRecord, isSaved: Bool) throws(ServerError) -> Publication
}

/// Keeps the records of uploads, which say to what the stored bytes belong.
package protocol UploadRecords: Sendable {
  /// Saves the record of a reception, so that it survives the process and `load` finds it, or updates the record.
  /// Throws 413 or 507 as `begin`. A final upload has no reception; it claims its parts. Throws 409 if a
  /// part is claimed by another upload, 410 if a part is gone. Claimed parts expire together with the final upload.
  func save(_ record: UploadRecord) throws(ServerError)

  /// Loads an upload; nil: it never existed or has been forgotten. Throws 410 for a finished upload whose file no
  /// longer exists or was replaced.
  func load(_ id: UploadID) throws(ServerError) -> SavedUpload?

  /// Whether the file that a finished upload was published as still exists and was not replaced. For a part, this
  /// refers to its final upload, which may not be published yet.
  func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool

  /// Deletes a saved upload with its bytes and those of its parts.
  func delete(_ id: UploadID)

  /// Deletes uploads that have received no byte for too long, except those for which `isBusy` is true, and returns
  /// their ids.
  func expire(isBusy: (UploadID) -> Bool) -> [UploadID]

  /// Saved uploads that are complete but were not published, because the server was killed in between. An upload with
  /// all its bytes whose client has not said that it ends is not complete.
  func complete() -> [UploadRecord]

  /// The number of saved uploads that are not finished.
  var unfinished: Int { get }

  /// How many of them were begun in this run, or reopened.
  var continued: Int { get }

  /// The saved uploads that are not finished, `most` at most, sorted by their paths. Parts of one file count as one.
  func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload]
}

/// Tells how much can be stored.
package protocol StoreRoom: Sendable {
  /// How many more bytes can be stored, as far as disk and quota are concerned; nil: the system does not tell.
  var free: Int64? { get }

  /// Whether the limit for all files, and not the disk, is what `free` tells.
  var isBoundByLimit: Bool { get }

  /// Whether an upload was refused since the last call because of the limit for all files.
  func takeRefusal() -> Bool

  /// Sets `submit`, which is called before an upload is refused because of the quota, with work that looks for unknown
  /// free room. It must run that work once, on another thread, after `expire`. Until the work has ended, the store may
  /// refuse with `Retry-After`.
  func onShortage(_ submit: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void)
}

/// Watches a store, and ends its work.
package protocol StoreOperation: Sendable {
  /// Why files cannot be served or received; nil: they can. Blocks as long as the file system does.
  var problem: String? { get }

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
