import Blobs
import Synchronization

/// Compares the bytes stored and reserved in a store with a limit.
///
/// Every unfinished upload has a share: its reserved length, or its stored bytes if they are more. Shares are kept by
/// upload id, so that each is released once, with the amount that was reserved. Published files are one sum.
package final class Quota: Sendable {
  /// The bytes that one unfinished upload takes.
  package struct Share: Sendable {
    var promised: Int64
    var held: Int64

    package init(promised: Int64 = 0, held: Int64 = 0) { (self.promised, self.held) = (promised, held) }

    var room: Int64 { max(promised, held) }
  }
  private struct State {
    /// 128 bits, because records on the disk may contain any number.
    var used: Int128 = 0
    var shares: [UploadID: Share] = [:]
    /// Total bytes of the files published since the start.
    var published: Int128 = 0
    /// The number of files published or deleted since the start.
    var changes = 0
    /// Whether an upload was refused since somebody asked.
    var hasRefused = false

    /// Bytes reserved for unfinished uploads.
    var unfinished: Int128 { shares.values.reduce(0) { $0 + Int128($1.room) } }
  }
  private let limit: Int64?
  private let state = Mutex(State())
  private let search = FreeSpaceSearch()
  private let changes = Mutex(())

  package init(_ limit: Int64?) { self.limit = limit }

  package var isLimited: Bool { limit != nil }

  /// How many more bytes can be stored or reserved; nil: there is no limit.
  package var free: Int64? {
    limit.map { limit in Int64(clamping: max(0, Int128(limit) - state.withLock { $0.used })) }
  }

  /// `submit` is called when the quota is exhausted, with work that measures the tree again. It must run that work on
  /// another thread, after removing expired uploads.
  package func onShortage(_ submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
    search.onShortage(submit)
  }

  /// Enlarges the upload's share to a total of `promised` bytes and to `held` stored bytes. Returns how many bytes the
  /// upload may store before it must reserve more. If there is not enough room, the share is unchanged and this throws:
  /// 413 if the upload is larger than the limit, otherwise 507, which tells the client that no other file of this size
  /// fits either. The 507 has `Retry-After` while the tree is being measured. Blocks for a second at most.
  @discardableResult
  package func reserve(_ id: UploadID, promised: Int64 = 0, held: Int64 = 0) throws(ServerError) -> Int64 {
    guard let limit else { return .max }
    let least = max(promised, held)
    if least > limit {
      throw ServerError(
        413, "all files together may have \(limit) bytes at most, this one has at least \(least)",
        kind: .beyondTotal)
    }
    do throws(ServerError) {
      return try take(id, promised: promised, held: held, limit)
    } catch {
      if !search.run() { throw error }
    }
    do throws(ServerError) {
      return try take(id, promised: promised, held: held, limit)
    } catch {
      guard search.isRunning else { throw error }
      var refusal = error
      refusal.message += "; what is stored is being measured again, so try again in a moment"
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
        state.hasRefused = true
        throw ServerError(
          507,
          "no room for \(more) bytes: \(free) of \(limit) are free, \(state.unfinished) are kept for unfinished uploads"
        )
      }
      state.used += Int128(more)
      state.shares[id] = new
      return new.room
    }
  }

  /// Whether an upload was refused for want of room since the last call.
  package func takeRefusal() -> Bool {
    state.withLock { state in
      defer { state.hasRefused = false }
      return state.hasRefused
    }
  }

  /// How many bytes the upload may store before it must reserve more.
  package func room(of id: UploadID) -> Int64 {
    limit == nil ? .max : state.withLock { $0.shares[id]?.room ?? 0 }
  }

  /// Call when the upload's data was truncated to `held` bytes.
  package func shrink(_ id: UploadID, held: Int64) {
    change(id) { $0?.held = held }
  }

  /// Call when the upload and its bytes were deleted.
  package func release(_ id: UploadID) {
    change(id) { $0 = nil }
  }

  /// Call when all uploads and their bytes were deleted.
  func forgetUploads() {
    if !isLimited { return }
    state.withLock { state in
      state.used = max(0, state.used - state.unfinished)
      state.shares = [:]
    }
  }

  /// Moves a part's bytes to the share of its final upload; the part's share is released.
  func move(_ bytes: Int64, from part: UploadID, to final: UploadID) {
    change(part) { $0 = nil }
    change(final) { $0 = Share(held: ($0?.held ?? 0).addingClamped(bytes)) }
  }

  /// Call when the upload was published as a file of `bytes`, replacing one of `old` bytes (0: none).
  package func publish(_ id: UploadID, _ bytes: Int64, replacing old: Int64) {
    change(id, Int128(bytes) - Int128(old), published: bytes) { $0 = nil }
  }

  /// Call when a published file of `bytes` was deleted.
  package func remove(_ bytes: Int64) {
    if !isLimited { return }
    state.withLock { state in
      state.used = max(0, state.used - Int128(bytes))
      state.changes += 1
    }
  }

  /// `difference`: the change of the published bytes. `published`: the length of a newly published file.
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
      // Clamped, because files that others have deleted or replaced may have been counted with another size.
      state.used = max(0, state.used + difference + Int128(share?.room ?? 0) - Int128(before))
    }
  }

  /// Runs `change`, which removes or replaces a published file, while no other such change runs, so that the file that
  /// it has checked is the one removed. `change` must be short.
  func changing<Result>(_ change: () throws(ServerError) -> Result) throws(ServerError) -> Result {
    try changes.withLock { (_) throws(ServerError) in try change() }
  }

  /// Counts the existing bytes when the server starts: those of unfinished uploads, and of published files, which
  /// `published` adds up. That is called again, on another thread, when the quota is exhausted.
  package func measure(
    _ shares: [UploadID: Share], published: @escaping @Sendable () throws(ServerError) -> Int128
  ) throws(ServerError) {
    let clock = MonotonicClock()
    let began = clock.now
    var found = State()
    found.shares = shares
    found.used = try published() + found.unfinished
    state.withLock { $0 = found }
    search.setUp(took: clock.now - began) { [weak self] in self?.measureAgain(published) }
  }

  /// Counts the published files again. Blocks while the tree is read.
  private func measureAgain(_ published: () throws(ServerError) -> Int128) {
    let before = state.withLock { ($0.published, $0.changes) }
    // If the tree cannot be read, or the server stops meanwhile, the sum is not changed.
    guard let found = try? published() else { return }
    // The lock ensures that no file is published or deleted while the sum changes.
    changes.withLock { _ in
      state.withLock { state in
        // Files published while the tree was read may or may not have been counted, so all of them are added. The
        // result may be too high but not too low; the sum kept so far is an upper bound.
        let most = found + (state.published - before.0) + state.unfinished
        state.used = state.changes == before.1 ? most : min(state.used, most)
      }
    }
  }
}
