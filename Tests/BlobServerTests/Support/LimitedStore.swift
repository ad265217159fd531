import BlobServer

/// A store in a folder that has fewer abilities than the folder's own.
final class LimitedStore: UploadStore {
  let abilities: StoreAbilities
  private let store: FileStore

  init(_ store: FileStore, _ abilities: StoreAbilities) { (self.store, self.abilities) = (store, abilities) }

  func item(at path: ServedPath) throws(ServerError) -> StoredItem? { try store.item(at: path) }
  func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState {
    try store.target(at: path, in: folder)
  }
  func open(_ path: ServedPath) throws(ServerError) -> OpenItem { try store.open(path) }

  func begin(
    _ id: UploadID, for target: ServedPath, length: Int64?, modified: ModificationTime?
  ) throws(ServerError) -> any Reception {
    try store.begin(id, for: target, length: length, modified: modified)
  }
  func reopen(_ id: UploadID) throws(ServerError) -> any Reception { try store.reopen(id) }
  func publish(_ reception: any Reception, _ record: UploadRecord, isSaved: Bool) throws(ServerError) -> Publication {
    try store.publish(reception, record, isSaved: isSaved)
  }

  func save(_ record: UploadRecord) throws(ServerError) { try store.save(record) }
  func load(_ id: UploadID) throws(ServerError) -> SavedUpload? { try store.load(id) }
  func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool { try store.isStillPublished(record) }
  func delete(_ id: UploadID) { store.delete(id) }
  func expire(isBusy: (UploadID) -> Bool) -> [UploadID] { store.expire(isBusy: isBusy) }
  func complete() -> [UploadRecord] { store.complete() }
  var unfinished: Int { store.unfinished }
  var continued: Int { store.continued }
  func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload] { store.unfinishedUploads(atMost: most) }

  var free: Int64? { store.free }
  var isBoundByLimit: Bool { store.isBoundByLimit }
  func takeRefusal() -> Bool { store.takeRefusal() }
  func onShortage(_ submit: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void) {
    store.onShortage(submit)
  }

  var problem: String? { store.problem }
  func lookAgain() -> [String] { store.lookAgain() }
  var isInterrupted: Bool { store.isInterrupted }
  func interrupt() { store.interrupt() }
  func close() { store.close() }
}
