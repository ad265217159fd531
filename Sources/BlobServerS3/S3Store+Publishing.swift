import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

extension S3Store {
  package func publish(
    _ reception: any Reception, _ record: UploadRecord, isSaved: Bool
  ) throws(ServerError) -> Publication {
    guard let reception = reception as? S3Reception else { preconditionFailure("a reception of another store") }
    return try concealment.publication(at: record.target) { () throws(ServerError) -> Publication in
      do throws(ServerError) {
        let content = try reception.content()
        if isSaved { try records.check(record.id, isSaved: true, under: reception.fence) }
        let (publication, old) = try publish(content, record)
        quota.publish(record.id, publication.outcome == .same ? 0 : content.length, replacing: old)
        try end(reception, content, record, publication, isSaved: isSaved)
        return publication
      } catch {
        let error = reception.judged(error, under: reception.fence)
        if error.endsUpload { delete(reception.id) }
        throw error
      }
    }
  }

  /// Applies the rule for an existing file, and makes the object. `old`: the length of the object that it has replaced.
  private func publish(
    _ content: S3Reception.Content, _ record: UploadRecord
  ) throws(ServerError) -> (Publication, old: Int64) {
    func published(_ outcome: Publication.Outcome, _ item: StoredItem) -> Publication {
      let time = record.modified?.sinceEpoch
      return Publication(outcome: outcome, item: item, hasModificationTime: time != nil && item.modified == time)
    }
    // With a rule that replaces nothing, the request that makes the object asks whether the name is free.
    var asks = record.existing.replaces
    for _ in 0..<3 {
      let head = asks ? try bucket.head(of: record.target) : nil
      if let head {
        let item = StoredItem(head)
        // An earlier attempt has made it, after which the server was killed.
        if bucket.s3.isResult(head.tag, of: content.stored.parts.map(\.receipt)) { return (published(.same, item), 0) }
        try record.existing.admit(item, at: record.target, length: content.length)
        if !record.existing.replaces(item) {
          let object = S3Content(bucket: bucket, url: bucket.url(of: record.target), tag: head.tag)
          if try hasSameBytes(object, content) { return (published(.same, item), 0) }
          throw record.existing.hasOtherBytes(record.target)
        }
      } else {
        try record.existing.checkVersion(nil, at: record.target)
      }
      if let (item, wasThere) = try make(content, record, replacing: head) {
        return (published(wasThere ? .same : head == nil ? .created : .replaced, item), head?.length ?? 0)
      }
      // Another upload has taken or replaced the name just now, so the rule is applied to what it has brought.
      asks = true
    }
    throw ServerError(503, "\(record.target) comes and goes in the server's store")
  }

  /// Makes the object. `old`: the one that it replaces; nil: none may have its name. Returns nil if another one has it.
  /// `wasThere`: an object with the same bytes was there already, as after a kill of the server between the completion and
  /// the record of it.
  private func make(
    _ content: S3Reception.Content, _ record: UploadRecord, replacing old: S3Head?
  ) throws(ServerError) -> (StoredItem, wasThere: Bool)? {
    let length = content.length
    var target = bucket.target(record.target, length: length, record.modified, replacing: old)
    // A server that shares uploads may be stopped just here, and must not replace what has come when it goes on.
    let replacesAny = record.existing == .replace && records.claims == nil
    if replacesAny || !conditions.areKnown { target.replaced = .unknown }
    let (conditioned, session) = (target, bucket.session(of: content.stored))
    let request = bucket.start { s3, context async throws(UploadError) -> UploadResult? in
      if let bytes = content.bytes {
        let part = Part(number: 1, start: 0, length: length, isLast: true)
        let held = try await s3.create(conditioned, first: FirstPart(part, BlobSlice(DataSource(bytes))), context)
        guard case .finished(let result) = held else { return nil }
        return result
      }
      guard let session else { return nil }
      let ending = s3.session(session, for: conditioned)
      return try await s3.complete(ending, content.stored.parts.map(\.receipt), context)
    }
    var result: UploadResult?
    do throws(UploadError) {
      result = try request.value()
    } catch {
      if let refusal = ServerError(refusing: target.path, error) { throw refusal }
      // With If-Match, 404 says that the object is gone.
      if error.status == 412 || error.status == 404 && target.replaced != .unknown { return nil }
      if error.status == 501, target.replaced != .unknown {
        conditions.noteUnknown()
        return try make(content, record, replacing: old)
      }
      // The bucket does not have the parts that this server has noted, so a second completion would fail too.
      if error.status == 400, error.recovery == .resync, content.bytes == nil {
        throw ServerError(ofLostUpload: error)
      }
      throw ServerError(storing: error)
    }
    let wasThere = result?.isCompared == true
    // An object that was there keeps the time that it has.
    if !wasThere, let tag = result?.state["etag"] {
      return (StoredItem(length: length, tag: tag, record.modified, 0), wasThere)
    }
    guard let head = try bucket.head(of: record.target) else {
      throw ServerError(503, "\(record.target) was not stored")
    }
    return (StoredItem(head), wasThere)
  }

  /// Whether an object consists of pieces with these digests.
  private func hasSameBytes(
    _ object: S3Content, _ content: S3Reception.Content
  ) throws(ServerError) -> Bool {
    var rest = content.digests[...]
    var (digest, left) = (Digest(.sha256), rest.first?.length ?? 0)
    var isSame = true
    _ = try reader.read(object, content.length) { bytes in
      var bytes = bytes
      while !bytes.isEmpty, isSame {
        guard let piece = rest.first else { return false }
        let count = Int(min(left, Int64(bytes.count)))
        digest.update(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
        bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(count))
        left -= Int64(count)
        if left > 0 { continue }
        isSame = Digest.hex(digest.value()) == piece.sha256
        rest.removeFirst()
        (digest, left) = (Digest(.sha256), rest.first?.length ?? 0)
      }
      return isSame
    }
    return isSame && rest.allSatisfy { $0.length == 0 }
  }

  /// Ends an upload whose bytes are an object now.
  private func end(
    _ reception: S3Reception, _ content: S3Reception.Content, _ record: UploadRecord, _ publication: Publication,
    isSaved: Bool
  ) throws(ServerError) {
    let stored = content.stored
    if publication.outcome == .same, stored.session != nil {
      // The completion has ended the multipart upload if it has met the object; if not, it is ended now.
      let session = bucket.session(of: stored)
      try bucket.wait { s3, context async throws(UploadError) in
        if let session { try await s3.abort(session, context) }
      }
    }
    if !stored.tails.isEmpty {
      let id = record.id
      try bucket.wait { [tails] _, _ async throws(UploadError) in try await tails.delete(of: id, stored) }
    }
    reception.hasBeenPassedOn()
    var record = record
    (record.published, record.length) = (publication.item.version, content.length)
    let fence = reception.fence
    if isSaved { try records.finish(record, under: fence) } else if fence != nil { records.delete(record.id) }
    state.withLock { state in
      (state.receptions[record.id], state.unsaved[record.id]) = (nil, nil)
      state.unfinished.remove(record.id)
      state.untouched.remove(record.id)
    }
  }
}
