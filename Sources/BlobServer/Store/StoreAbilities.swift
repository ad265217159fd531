import BlobCrypto
import Blobs

/// The abilities that not every store has. nil: the store does not have this one.
package struct StoreAbilities: Sendable {
  package var removal: (any FileRemoval)?
  package var listing: (any FolderListing)?
  package var archiving: (any FolderArchiving)?
  package var joining: (any PartJoining)?
  package var digests: (any DigestReading)?
  package var receptionDigests: (any ReceptionDigests)?
  package var groups: (any GroupPublishing)?
  package var claims: (any UploadClaiming)?
  /// Whether the store's methods wait for another computer. Then nothing of it may be called on an event thread.
  package var waitsForNetwork: Bool

  package init(
    removal: (any FileRemoval)? = nil, listing: (any FolderListing)? = nil, archiving: (any FolderArchiving)? = nil,
    joining: (any PartJoining)? = nil, digests: (any DigestReading)? = nil,
    receptionDigests: (any ReceptionDigests)? = nil, groups: (any GroupPublishing)? = nil,
    claims: (any UploadClaiming)? = nil, waitsForNetwork: Bool = false
  ) {
    self.removal = removal
    self.listing = listing
    self.archiving = archiving
    self.joining = joining
    self.digests = digests
    self.receptionDigests = receptionDigests
    self.groups = groups
    self.claims = claims
    self.waitsForNetwork = waitsForNetwork
  }
}

extension UploadStore {
  /// The ability. Throws 501 if the store does not have it; `what` says what it cannot do.
  func required<Ability>(
    _ ability: KeyPath<StoreAbilities, Ability?>, _ what: @autoclosure () -> String
  ) throws(ServerError) -> Ability {
    if let ability = abilities[keyPath: ability] { return ability }
    throw ServerError(501, "the place where this server stores its files cannot \(what())")
  }
}

/// Removes published files.
package protocol FileRemoval: Sendable {
  /// Removes a published file. Throws 404, or 409 for a folder. `check` gets the file that is about to be removed and
  /// throws to keep it; no other request of this server can replace the file in between.
  func remove(_ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void) throws(ServerError)
}

/// Lists folders.
package protocol FolderListing: Sendable {
  /// The entries of a folder after the name `start` (nil: from the first one on), `limit` at most, sorted by the bytes
  /// of their names, without names that begin with a dot. Memory grows with `limit` alone. Throws 404.
  func list(_ folder: ServedPath, after start: BytePath?, atMost limit: Int) throws(ServerError) -> FolderPage

  /// The number of files in a folder whose names do not begin with a dot. Throws 404.
  func count(_ folder: ServedPath) throws(ServerError) -> Int
}

/// Lists whole trees of folders, for archives.
package protocol FolderArchiving: Sendable {
  /// Lists all files and folders below `folder`, which an archive gives the name `name`, without names that begin with a
  /// dot. Throws 403 if one of them cannot be read, 413 if there are too many, and 503 once `isWanted`, which is called
  /// now and then, is false, or after `interrupt`.
  func tree(_ folder: ServedPath, named name: String, while isWanted: () -> Bool) throws(ServerError) -> FolderTree
}

/// Joins partial uploads. tus 1.0 §Concatenation.
package protocol PartJoining: Sendable {
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
}

/// Reads the bytes of an upload for their digests, before it is published.
package protocol ReceptionDigests: Sendable {
  /// Computes digests of all bytes of `reception`, which it reads. Throws 503 after `interrupt`.
  func digests(
    of reception: any Reception, _ algorithms: [Digest.Algorithm]
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]]
}

/// Reads published files for their digests.
package protocol DigestReading: Sendable {
  /// Computes a digest of a published file, which it reads completely. `fromDisk`: what memory has of the file is not used,
  /// as far as the system allows. Returns nil if `isWanted`, called now and then while reading, returns false because no
  /// client waits any more. Throws 503 after `interrupt`.
  func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, fromDisk: Bool, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]?
}

/// Publishes uploads that belong together: all of them get their names, or none does.
package protocol GroupPublishing: Sendable {
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
}
