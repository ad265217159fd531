import Blobs
import Platform
import Synchronization

// A final upload takes over the data file of its first part, and the bytes of the other parts are appended:
//
//   claim:    FINAL.join is created, then FINAL.info, which names the parts. After a kill in between, start-up
//             deletes FINAL.join.
//   join:     The data of the first part is renamed to FINAL.data. Then, for each further part, its bytes are copied,
//             FINAL.data is synced, and only then the part's data is deleted. So the bytes of a part without data are
//             in FINAL.data. After a kill, FINAL.data is truncated to the total length of the parts without data, and
//             joining continues there.
//   publish:  As for any upload. After FINAL.done is created, the records of the parts are finished; start-up
//             completes this after a kill.
//   delete:   FINAL.info is deleted first, then its data, then the parts, then FINAL.join. After a kill in between,
//             parts without a claim remain, which expire.
//
// So extra disk space is only needed for the bytes copied between two syncs, and none if the file system shares blocks.

/// Knows which final uploads have claimed which parts, and joins the parts.
final class FileJoining: PartJoining {
  private struct Claims {
    var finals: [UploadID: UploadID] = [:]
    var parts: [UploadID: [UploadID]] = [:]
    /// Parts that are being deleted and cannot be claimed.
    var deleted: Set<UploadID> = []
  }
  private let claims = Mutex(Claims())
  private let served: ServedFolder
  private let quota: Quota
  private let interruption: Cancellation

  init(_ served: ServedFolder, _ quota: Quota, _ interruption: Cancellation) {
    (self.served, self.quota, self.interruption) = (served, quota, interruption)
  }

  /// The number of bytes copied between two syncs.
  private static let stretch: Int64 = 64 << 20

  func claimant(of part: UploadID) -> UploadID? { claims.withLock { $0.finals[part] } }

  func claim(_ parts: [UploadID], for id: UploadID, _ store: Folder) throws(ServerError) {
    try claims.withLock { (claims) throws(ServerError) in
      for part in parts {
        if claims.finals[part] ?? id != id {
          throw ServerError(409, "the part \(part) belongs to another final upload")
        }
        if claims.deleted.contains(part) { throw Self.isGone(part) }
      }
      for part in parts { claims.finals[part] = id }
      claims.parts[id] = parts
    }
    do throws(ServerError) {
      // After the claim no request can delete a part; a part that was deleted before has no record any more.
      for part in parts where try store.status(part.info) == nil { throw Self.isGone(part) }
      _ = try store.open(id.join, O_WRONLY | O_CREAT)
    } catch {
      releaseClaims(of: id, store)
      throw error
    }
  }

  private static func isGone(_ part: UploadID) -> ServerError { ServerError(410, "the part \(part) is gone") }

  func unlessClaimed(
    _ part: UploadID, _ delete: () throws(ServerError) -> Void
  ) throws(ServerError) -> UploadID? {
    let claimant = claims.withLock { claims in
      if claims.finals[part] == nil { claims.deleted.insert(part) }
      return claims.finals[part]
    }
    if let claimant { return claimant }
    defer { claims.withLock { _ = $0.deleted.remove(part) } }
    try delete()
    return nil
  }

  func releaseClaims(of id: UploadID, _ store: Folder) {
    forgetClaims(of: id)
    store.unlink(id.join)
  }

  /// Removes the claims of a final upload and returns its parts; nil if it is not a final upload.
  @discardableResult func forgetClaims(of id: UploadID) -> [UploadID]? {
    claims.withLock { claims in
      let parts = claims.parts.removeValue(forKey: id)
      for part in parts ?? [] { claims.finals[part] = nil }
      return parts
    }
  }

  /// Forgets the uploads of a folder that is not there any more.
  func forgetAll() { claims.withLock { $0 = Claims() } }

  /// The parts that a final upload has claimed; nil for other uploads.
  func parts(of id: UploadID) -> [UploadID]? { claims.withLock { $0.parts[id] } }

  /// Restores the claims of a final upload at start-up. Returns those of its parts that were not finished, although it is.
  func findClaims(of id: UploadID, _ store: Folder) throws(ServerError) -> [UploadID] {
    let unfinished = try store.record(id, id.info)
    let finished = unfinished == nil ? try store.record(id, id.done) : nil
    guard let parts = (unfinished ?? finished)?.parts else {
      store.unlink(id.join)
      return []
    }
    claims.withLock { claims in
      for part in parts { claims.finals[part] = id }
      claims.parts[id] = parts
    }
    if unfinished != nil { return [] }
    var open: [UploadID] = []
    for part in parts where try store.status(part.info) != nil { open.append(part) }
    return open
  }

  /// Whether all bytes of the part are available, in its own file or in its final upload.
  func isWhole(_ part: UploadID, _ store: Folder) -> Bool {
    // If the record cannot be read now, the error shows when the client asks.
    guard let record = try? store.record(part, part.info) else { return false }
    guard let status = try? store.status(part.data) else { return true }
    return Int64(status.st_size) == record.length
  }

  /// The number of bytes that a final upload has taken over from its parts; nil for other uploads.
  func joined(_ id: UploadID, _ store: Folder) throws(ServerError) -> Int64? {
    guard let parts = parts(of: id) else { return nil }
    var sum: Int64 = 0
    for part in parts where try store.status(part.data) == nil {
      sum = sum.addingClamped(try length(of: part, store))
    }
    return sum
  }

  private func length(of part: UploadID, _ store: Folder) throws(ServerError) -> Int64 {
    guard let length = try store.record(part, part.info)?.length else {
      throw Self.isGone(part)
    }
    return length
  }

  func join(_ record: UploadRecord) throws(ServerError) -> any Reception {
    guard let parts = record.parts, let total = record.length else { preconditionFailure("no final upload") }
    let store = try served.uploads()
    var lengths: [Int64] = []
    for part in parts { lengths.append(try length(of: part, store)) }
    if try store.status(record.id.data) == nil { try takeOver(parts[0], lengths[0], for: record.id, store) }
    let file = try store.open(record.id.data, O_RDWR)
    var next = parts.count
    while next > 1, try store.status(parts[next - 1].data) != nil { next -= 1 }
    var end = lengths[..<next].reduce(Int64(0)) { $0.addingClamped($1) }
    try cut(file, to: end, record.id, store)
    var synced = next
    var unsynced: Int64 = 0
    while next < parts.count {
      let part = try store.open(parts[next].data, O_RDONLY)
      try append(part, to: file, at: end, lengths[next], parts[next])
      end = end.addingClamped(lengths[next])
      unsynced = unsynced.addingClamped(lengths[next])
      next += 1
      if unsynced < Self.stretch, next < parts.count { continue }
      if fsync(file.number) != 0 { throw store.failed("sync upload", record.id.description) }
      for copied in synced..<next {
        store.unlink(parts[copied].data)
        quota.move(lengths[copied], from: parts[copied], to: record.id)
      }
      (synced, unsynced) = (next, 0)
    }
    if end != total { throw ServerError(410, "the parts have \(end) bytes together, not \(total)") }
    return FileReception(record.id, file, length: total, store, quota)
  }

  private func takeOver(
    _ part: UploadID, _ length: Int64, for id: UploadID, _ store: Folder
  ) throws(ServerError) {
    guard let size = try store.status(part.data)?.st_size, Int64(size) == length else {
      throw ServerError(410, "the part \(part) is gone, or not whole")
    }
    let renamed = part.data.withCString { old in
      id.data.withCString { renameat(store.number, old, store.number, $0) }
    }
    if renamed != 0 { throw store.failed("take over the part", part.description) }
    quota.move(length, from: part, to: id)
    id.data.withCString { _ = utimensat(store.number, $0, nil, 0) }  // its expiry time starts again
  }

  /// Removes bytes copied from parts whose data files still exist.
  private func cut(_ file: Descriptor, to end: Int64, _ id: UploadID, _ store: Folder) throws(ServerError) {
    var status = stat()
    if fstat(file.number, &status) != 0 { throw store.failed("look at upload", id.description) }
    if Int64(status.st_size) < end { throw ServerError(410, "bytes of the upload are gone") }
    if Int64(status.st_size) > end, ftruncate(file.number, off_t(end)) != 0 {
      throw store.failed("join upload", id.description)
    }
  }

  private func append(
    _ part: Descriptor, to file: Descriptor, at end: Int64, _ length: Int64, _ id: UploadID
  ) throws(ServerError) {
    var done: Int64 = 0
    while done < length {
      if interruption.isCancelled { throw ServerError(503, "the server is stopping") }
      let count = copyRange(part.number, done, file.number, end + done, min(length - done, Self.stretch))
      if count < 0 {
        if errno == EINTR { continue }
        // 413 for a file that is too large for the file system: it can never be joined.
        throw failed("join at byte \(done) of part", id.description)
      }
      if count == 0 { throw ServerError(410, "the part \(id) ends at byte \(done) of \(length)") }
      done += Int64(count)
    }
  }
}

/// Copies bytes between files, by reference if the file system shares blocks. Returns as `pwrite` does; 0 at the end.
private func copyRange(_ from: Int32, _ start: Int64, _ to: Int32, _ offset: Int64, _ count: Int64) -> Int {
  #if os(Linux)
    let copied = fb_copy_file_range(from, start, to, offset, UInt(count))
    if copied >= 0 || ![ENOSYS, EXDEV, EINVAL, EOPNOTSUPP].contains(errno) { return copied }
  #endif
  return withUnsafeTemporaryAllocation(byteCount: 256 << 10, alignment: 4096) { buffer in
    let got = pread(from, buffer.baseAddress!, min(buffer.count, Int(count)), off_t(start))
    return got <= 0 ? got : pwrite(to, buffer.baseAddress!, got, off_t(offset))
  }
}
