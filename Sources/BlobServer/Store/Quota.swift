import Blobs
import Synchronization

/// Bytes the folder holds and has promised to hold, against the most it may.
///
/// Every unfinished upload has a share: what it was promised, or what it holds where that is more. The share is known by
/// the upload's id, so that it is given back once and as it was taken. Published files are one sum.
final class Quota: Sendable {
  private struct Share {
    var promised: Int64 = 0
    var held: Int64 = 0
    var room: Int64 { max(promised, held) }
  }
  private struct State {
    /// 128 bits: records on the disk may promise any number.
    var used: Int128 = 0
    var shares: [UploadID: Share] = [:]
    /// Bytes of all files that were published since the start.
    var published: Int128 = 0
    /// How many files were published or deleted since the start.
    var changes = 0

    /// Bytes that the store keeps free for unfinished uploads.
    var unfinished: Int128 { shares.values.reduce(0) { $0 + Int128($1.room) } }
  }
  private let limit: Int64?
  private let state = Mutex(State())
  private let search = RoomSearch()
  private let changes = Mutex(())

  init(_ limit: Int64?) { self.limit = limit }

  var isLimited: Bool { limit != nil }

  /// `submit` is called when there is no room, with work that measures the tree again. It must run that work on another
  /// thread, after it has removed what has expired.
  func onShortage(_ submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) { search.onShortage(submit) }

  /// Makes the upload's share large enough for `promised` bytes in all and for `held` bytes. Returns how many bytes the
  /// upload may hold before it must ask again. Where there is no room the share stays as it is: throws 507 while room is
  /// being looked for, else 413. Blocks for a second at most.
  @discardableResult
  func reserve(_ id: UploadID, promised: Int64 = 0, held: Int64 = 0) throws(ServerError) -> Int64 {
    guard let limit else { return .max }
    do throws(ServerError) {
      return try take(id, promised: promised, held: held, limit)
    } catch {
      // Not even an empty folder would have room for more than the limit.
      guard max(promised, held) <= limit, search.run() else { throw error }
    }
    do throws(ServerError) {
      return try take(id, promised: promised, held: held, limit)
    } catch {
      guard search.isRunning else { throw error }
      var refusal = ServerError(507, error.message + "; the folder is being measured again, so try again in a moment")
      refusal.headers["Retry-After"] = "5"
      throw refusal
    }
  }

  private func take(_ id: UploadID, promised: Int64, held: Int64, _ limit: Int64) throws(ServerError) -> Int64 {
    try state.withLock { (state) throws(ServerError) in
      let old = state.shares[id] ?? Share()
      let new = Share(promised: max(old.promised, promised), held: max(old.held, held))
      let more = new.room - old.room
      let free = max(0, Int128(limit) - state.used)
      if Int128(more) > free {
        throw ServerError(
          413,
          "no room for \(more) bytes: \(free) of \(limit) are free, \(state.unfinished) are kept for unfinished uploads"
        )
      }
      state.used += Int128(more)
      state.shares[id] = new
      return new.room
    }
  }

  /// How many bytes the upload may hold before it must ask again.
  func room(of id: UploadID) -> Int64 {
    limit == nil ? .max : state.withLock { $0.shares[id]?.room ?? 0 }
  }

  /// The upload holds no more than `held` bytes now.
  func shrink(_ id: UploadID, held: Int64) {
    change(id) { $0?.held = held }
  }

  /// The upload is gone, and its bytes with it.
  func release(_ id: UploadID) {
    change(id) { $0 = nil }
  }

  /// All uploads are gone, and their bytes with them.
  func forgetUploads() {
    if !isLimited { return }
    state.withLock { state in
      state.used = max(0, state.used - state.unfinished)
      state.shares = [:]
    }
  }

  /// Bytes of a part belong to its final upload now; the part has none left.
  func move(_ bytes: Int64, from part: UploadID, to final: UploadID) {
    change(part) { $0 = nil }
    change(final) { $0 = Share(held: ($0?.held ?? 0).addingClamped(bytes)) }
  }

  /// The upload has become a file of `bytes`, in the place of one that had `old`.
  func publish(_ id: UploadID, _ bytes: Int64, replacing old: Int64) {
    change(id, Int128(bytes) - Int128(old), published: bytes) { $0 = nil }
  }

  /// A published file was deleted.
  func remove(_ bytes: Int64) {
    if !isLimited { return }
    state.withLock { state in
      state.used = max(0, state.used - Int128(bytes))
      state.changes += 1
    }
  }

  /// `difference`: by how much the published files have more bytes than before. `published`: bytes of a new file.
  private func change(
    _ id: UploadID, _ difference: Int128 = 0, published: Int64? = nil, _ body: (inout Share?) -> Void
  ) {
    if !isLimited { return }
    state.withLock { state in
      var share = state.shares[id]
      let before = share?.room ?? 0
      body(&share)
      state.shares[id] = share
      if let published {
        state.published += Int128(published)
        state.changes += 1
      }
      // Files that someone else has deleted or replaced may have been counted otherwise.
      state.used = max(0, state.used + difference + Int128(share?.room ?? 0) - Int128(before))
    }
  }

  /// Runs `change`, which removes or replaces a published file, while no other such change runs: the file that it has
  /// looked at is the one that goes. `change` must be short.
  func changing<Result>(_ change: () throws(ServerError) -> Result) throws(ServerError) -> Result {
    try changes.withLock { (_) throws(ServerError) in try change() }
  }

  /// Counts what is there when the server starts: published files and unfinished uploads.
  /// `joined`: what a final upload has taken over from its parts; nil for any other.
  func measure(
    _ root: Folder, _ store: Folder, _ cancel: Cancellation, joined: (UploadID) throws(ServerError) -> Int64?
  ) throws(ServerError) {
    let clock = MonotonicClock()
    let began = clock.now
    var found = State()
    found.used = try TreeSize.bytes(below: root, without: ServedPath.storeName, cancel)
    for name in try store.names() {
      guard let file = UploadFile(name), file.kind == .data else { continue }
      // A record that cannot be read promises nothing; its bytes count all the same.
      let held = (try? store.status(name)).map { Int64($0.st_size) } ?? 0
      let promised = (try? store.record(file.id, file.id.info))?.length ?? 0
      let share =
        if let joined = try? joined(file.id) { Share(held: joined) } else { Share(promised: promised, held: held) }
      found.shares[file.id] = share
      found.used += Int128(share.room)
    }
    state.withLock { $0 = found }
    search.setUp(took: clock.now - began) { [weak self] in self?.measureAgain(root, cancel) }
  }

  /// Counts the published files as they are now. Blocks while the tree is read.
  private func measureAgain(_ root: Folder, _ cancel: Cancellation) {
    let before = state.withLock { ($0.published, $0.changes) }
    // The sum stays as it is when the tree cannot be read, or the server stops meanwhile.
    guard let found = try? TreeSize.bytes(below: root, without: ServedPath.storeName, cancel) else { return }
    // No file is published or deleted here while the sum changes.
    changes.withLock { _ in
      state.withLock { state in
        // Files that were published while the tree was read may have been read or not, so that all are added. That is
        // too much rather than too little, and must not be more than what was counted one by one.
        let most = found + (state.published - before.0) + state.unfinished
        state.used = state.changes == before.1 ? most : min(state.used, most)
      }
    }
  }
}
