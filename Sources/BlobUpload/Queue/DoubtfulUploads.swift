import Blobs

/// Confirms uploads whose success may have been the response to another request.
struct DoubtfulUploads {
  private let destination: QueueDestination
  private let claims: ItemClaims
  let recent: RecentUploads

  init(_ destination: QueueDestination, _ claims: ItemClaims) {
    (self.destination, self.claims) = (destination, claims)
    recent = RecentUploads(destination.uploader)
  }

  private var journal: Journal { destination.journal }

  /// Looks for the doubtful uploads at the server, and sends again those that it does not have. Returns the error after
  /// which no other item can succeed; nil: continue.
  func send(in items: ItemSender) async -> UploadError? {
    let doubtful = recent.takeDoubtful()
    if doubtful.isEmpty { return nil }
    // If this process is killed now, the next one must not believe that they are stored.
    for upload in doubtful { journal.doubted(upload.id) }
    do { try await destination.flush() } catch { return error }
    for (index, upload) in doubtful.enumerated() {
      if await isStored(upload) {
        journal.kept(upload.id)
        continue
      }
      if Task.isCancelled {
        leave(doubtful[index...])
        return nil
      }
      recent.noteLoss()
      if let error = await sendAgain(upload, in: items) {
        leave(doubtful[(index + 1)...])
        return error
      }
    }
    return nil
  }

  /// Called in place of `send` if the queue ends early: the next run asks for the doubtful uploads.
  func leave() { leave(recent.takeDoubtful()[...]) }

  /// The journal keeps the location of each upload, and the digest of a sealed one: sealed anew, it would be another file.
  private func leave(_ uploads: ArraySlice<RecentUploads.Upload>) {
    for upload in uploads {
      journal.doubted(upload.id)
      journal.released(upload.id)
    }
  }

  private func isStored(_ upload: RecentUploads.Upload) async -> Bool {
    // If the server does not say whether it has the file, the file counts as stored if the response certainly belonged
    // to its request.
    let isBelieved = upload.isAlone || !recent.areMixed
    let target = upload.work.item.target
    do {
      if try await destination.uploader.isThere(target, location: upload.location) { return true }
      // Some servers report no length for HEAD, or a length of 0.
      let found = try await destination.uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await destination.engine.context().remoteLength(of: target.url, expecting: target.length)
      }
      switch found {
      case .found(nil), .hidden: return isBelieved
      case .found(let length?): return length == target.length ?? length
      case .noContent: return target.length == 0
      case .missing: return false
      }
    } catch {
      // Otherwise the caller sends the file again, and reports the error if the server does not answer that either.
      return isBelieved && error.saysUnknown
    }
  }

  private func sendAgain(_ upload: RecentUploads.Upload, in items: ItemSender) async -> UploadError? {
    let (work, losses) = (upload.work, upload.work.losses + 1)
    do throws(UploadError) {
      if losses > Self.mostLosses || work.item.source.access == .sequential {
        throw UploadError(
          .giveUp, .file,
          "\(work.item.target.url): the server, or a proxy before it, answers requests twice: it has said that the file is "
            + "stored, and does not have it")
      }
      destination.uploader.notice?(
        "\(work.item.target.path): the server has said that it is stored, and does not have it: it is sent again")
      journal.released(upload.id)
      guard let claim = try await claims.claim([work.item], again: true).first else { return nil }
      // The item was reported as sent, so it ends as failed and not as busy.
      if case .busy(let owner) = claim.claim {
        throw UploadError(
          .giveUp, .file,
          "\(work.item.target.url): the server has said that the file is stored, and does not have it; process \(owner.pid) "
            + "is sending to that name just now")
      }
      return await items.handle(ClaimedItem(work.item, claim.claim, losses: losses, isReported: true))
    } catch {
      // The entry was done, so it is claimed again before it ends as failed.
      journal.restarted(upload.id)
      journal.failed(upload.id, error.message)
      items.tell(work, nil, .failed(error))
      return error.endsQueue ? error : nil
    }
  }

  private static let mostLosses = 2
}

extension UploadError {
  /// The protocol cannot ask for this upload, as if the receiver of a form has not said where the file is.
  fileprivate var saysUnknown: Bool { side == .file && status == nil && recovery == .giveUp && cause == nil }
}
