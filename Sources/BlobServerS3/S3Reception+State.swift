import BlobServer

extension S3Reception {
  /// The state of a reception, which its lock guards.
  struct State {
    /// The bytes that the notes have.
    var stored: StoredBytes
    /// The bytes in the bucket with the provisional ones since `hold`, and their notes; nil: no bytes are provisional.
    var held: (stored: StoredBytes, notes: [StoredBytes.Note])?
    /// The length of the whole file; nil: not known yet.
    var total: Int64?
    /// The bytes that the request still brings; nil: not known.
    var coming: Int64?
    var sender: PartSender?
    /// Bytes in memory: those of a short file, or of a part of a request of unknown length, which begins with the tail.
    var buffer: [UInt8] = []
    var permit: MemoryBudget.Permit?
    var isSettled = true
    var isDiscarded = false
    /// The length up to which quota is reserved.
    var room: Int64

    var current: StoredBytes { held?.stored ?? stored }
    /// The claim under which the upload is changed; nil: nothing of it is kept yet.
    var fence: Int64?
    /// This server does not know what its last change has stored, or has lost the claim. It may change nothing more.
    var isOutdated = false

    /// The object for the next tail. It is another one than that of the tail which is kept, unless this server is the only
    /// one and extends it.
    func nextTail(isShared: Bool) -> TailName {
      let isOther = (held != nil || isShared) && stored.tail.name.generation == stored.generation
      return TailName(generation: stored.generation, isSecond: stored.tail.isSecond != isOther)
    }
    var length: Int64 {
      if let sender { return current.inParts + sender.length - sender.left }
      return buffer.isEmpty ? current.length : current.inParts + Int64(buffer.count)
    }

    /// Drops the bytes that the bucket does not have.
    mutating func dropUnstored() {
      sender?.abandon()
      (sender, buffer, permit, isSettled) = (nil, [], nil, true)
    }
  }

  /// Changes the state. Throws the error of `work`, as `judged` says.
  func change<Result: Sendable>(
    _ work: (inout State) throws(ServerError) -> Result
  ) throws(ServerError) -> Result {
    try state.withLock { (state) throws(ServerError) in
      do throws(ServerError) { return try work(&state) } catch { throw judged(error, under: state.fence) }
    }
  }

  /// The error for the client, if the bucket does not have what this server knows of (410). Another server may have
  /// finished the upload while this one was stopped. Then it is not gone, and the client asks for its state.
  func judged(_ error: ServerError, under fence: Int64?) -> ServerError {
    // Without a fence, nothing of the upload is in the bucket.
    guard error.status == 410, isShared, let fence else { return error }
    do throws(ServerError) { try store.records.check(id, isSaved: !store.isUnsaved(id), under: fence) } catch let loss {
      return loss
    }
    return error
  }
}
