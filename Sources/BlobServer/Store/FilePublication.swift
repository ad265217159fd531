import Blobs
import Platform

/// The publication of one upload in steps, so that several uploads can take each step together.
struct FilePublication {
  private let files: FileStore
  private let reception: FileReception
  let record: UploadRecord
  private let isSaved: Bool
  /// The folder of unfinished uploads, and the one that gets the file.
  private let store: Folder
  private let folder: Folder
  /// A file has the name, which may be replaced.
  private(set) var replaces = false
  private var isSynced = false
  private var hasTime = false
  private var length: Int64 { reception.length }
  /// The inode of the file, which it keeps when it gets its name; nil: the system does not tell.
  var inode: UInt64? {
    var status = stat()
    return fstat(reception.file.number, &status) == 0 ? UInt64(status.st_ino) : nil
  }

  init(
    of reception: any Reception, _ record: UploadRecord, isSaved: Bool, in files: FileStore
  ) throws(ServerError) {
    guard let reception = reception as? FileReception else { preconditionFailure("a reception of another store") }
    (self.files, self.reception, self.record, self.isSaved) = (files, reception, record, isSaved)
    store = try files.served.uploads()
    folder = try ServerError.retryable { () throws(ServerError) in
      try files.served.folder(record.target.parent, creating: true)
    }
  }

  /// Applies the rule for an existing file. Returns its item if the bytes are equal; nil: the upload can be shown.
  mutating func meet() throws(ServerError) -> StoredItem? {
    let before = try ServerError.retryable { () throws(ServerError) in try folder.status(record.target.name) }
    replaces = before != nil
    return try ending { () throws(ServerError) -> StoredItem? in
      guard let before else {
        try record.existing.checkVersion(nil, at: record.target)
        return nil
      }
      let item = try ServedFolder.item(before, record.target, in: folder)
      try record.existing.admit(item, at: record.target, length: length)
      if record.existing.replaces(item) { return nil }
      let file = try ServerError.retryable { () throws(ServerError) in
        try folder.open(record.target.name, O_RDONLY)
      }
      if try reception.hasSameBytes(as: file, files.interruption) {
        hasTime = record.modified?.isTime(of: before) == true
        return item
      }
      throw record.existing.hasOtherBytes(record.target)
    }
  }

  /// The bytes were published before.
  func end(as same: StoredItem) -> Publication {
    if isSaved { files.finish(record, as: same, store) }
    reception.discard()
    return Publication(outcome: .same, item: same, hasModificationTime: hasTime)
  }

  mutating func sync() throws(ServerError) {
    if isSynced { return }
    try reception.sync()
    isSynced = true
  }

  /// Gives the file its name. Returns false if the file now at the target must not be replaced.
  mutating func show() throws(ServerError) -> Bool {
    // Unfinished uploads expire by the modification time of their data, so the client's time is only set just before
    // publication.
    hasTime = record.modified?.apply(to: reception.file) ?? false
    var isShown = false
    defer { if hasTime, !isShown { futimens(reception.file.number, nil) } }
    isShown = try ServerError.retryable { () throws(ServerError) in try rename() }
    return isShown
  }

  /// Syncs the folder and finishes the record.
  mutating func settle() throws(ServerError) -> Publication {
    try folder.sync(record.target.parent.description)
    var status = stat()
    if fstat(reception.file.number, &status) != 0 { throw failed("look at", record.target.description) }
    if hasTime, record.modified?.isNearTime(of: status) == false {
      hasTime = false
      futimens(reception.file.number, nil)
      if fstat(reception.file.number, &status) != 0 { throw failed("look at", record.target.description) }
    }
    var item = StoredItem(status)
    item.stamp = VersionStamp(status, of: reception.file)
    if isSaved { files.finish(record, as: item, store) }
    return Publication(outcome: replaces ? .replaced : .created, item: item, hasModificationTime: hasTime)
  }

  /// Renames the data file to its target and counts it as published.
  private func rename() throws(ServerError) -> Bool {
    let (data, name) = (record.id.data, record.target.name)
    func change() throws(ServerError) -> Bool {
      var old: stat?
      if replaces {
        old = try folder.status(name)
        guard let old else { return false }
        var item = StoredItem(old)
        item.stamp = VersionStamp(old, of: name, in: folder)
        if !record.existing.replaces(item) { return false }
      }
      let renamed =
        replaces
        ? data.withCString { data in name.withCString { renameat(store.number, data, folder.number, $0) } }
        : renameNew(store, data, folder, name)
      if renamed != 0 {
        let problem = errno
        if problem == EEXIST { return false }
        if problem == ENOENT, try store.status(data) == nil {
          throw isSaved
            ? ServerError(410, "the upload is gone")
            : ServerError(500, "someone has removed the bytes from \(ServedPath.storeName) while they came")
        }
        errno = problem
        throw failed("publish", record.target.description)
      }
      files.quota.publish(record.id, length, replacing: old.map { Int64($0.st_size) } ?? 0)
      return true
    }
    // A new name replaces no file, so the lock is only needed for the sum of the quota.
    return try replaces || files.quota.isLimited ? files.quota.changing(change) : change()
  }

  /// Deletes the upload if `decide` throws an error that is final for this name.
  private func ending<Result>(_ decide: () throws(ServerError) -> Result) throws(ServerError) -> Result {
    do throws(ServerError) {
      return try decide()
    } catch {
      if error.endsUpload, [403, 409, 412].contains(error.status) {
        files.unlinkInfo(record.id, store)
        reception.discard()
        if record.parts != nil { files.deleteParts(of: record.id, store) }
      }
      throw error
    }
  }
}
