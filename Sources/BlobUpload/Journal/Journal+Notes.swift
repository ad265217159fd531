import Blobs

extension Journal {
  /// Starts recording what is sent of an upload that this journal has claimed. The closure takes the reached offset and
  /// the checksum under `key` of the bytes from `start` to it. It must be called before those bytes leave, on any
  /// thread; it does not wait for the disk, and its record survives a SIGKILL.
  package nonisolated func sending(
    _ id: Int64, from start: Int64, key: [UInt8]
  ) -> @Sendable (Int64, [UInt8]) -> Void { log.begin(id, from: start, key: key) }
}

// These methods may be called from any thread and do not wait for the disk. Notes for entries that this journal has not
// claimed are ignored.
extension Journal {
  /// The session was created or has changed. Written at once.
  package nonisolated func opened(_ id: Int64, _ session: UploadSession) { note(id, .opened(session)) }

  /// The upload is sealed under a key, of which `box` is the encrypted form. Written at once.
  nonisolated func sealing(_ id: Int64, _ box: String) { note(id, .sealing(box)) }

  /// Bytes that the server has confirmed. Written within a second; only the latest offset.
  package nonisolated func acknowledged(_ id: Int64, _ offset: Int64) { note(id, .acknowledged(offset)) }

  /// The server has a numbered part. Replaces an earlier receipt for it. Written at once.
  package nonisolated func receipt(_ id: Int64, _ receipt: PartReceipt) { note(id, .receipt(receipt)) }

  /// The upload is done; the claim ends. Written within 250 ms, together with others. `keepsChecksums` keeps the
  /// checksums of the sent bytes, for a source whose version does not identify its content: see `checksums(of:)`.
  /// `replaces`: the bytes were stored just now, so uploads of other sources to the same place are no longer done.
  package nonisolated func done(
    _ id: Int64, _ result: UploadResult, keepsChecksums: Bool = false, replaces: Bool = true
  ) {
    done(id, result, keepsChecksums: keepsChecksums, replaces: replaces, sealed: nil)
  }

  /// As above. `sealed`: what is known of the ciphertext that was sent; nil: the file was not sealed.
  nonisolated func done(
    _ id: Int64, _ result: UploadResult, keepsChecksums: Bool, replaces: Bool, sealed: SealedContent?
  ) {
    note(
      id,
      .done(
        location: result.journaled, length: result.length, keepsChecksums: keepsChecksums, replaces: replaces,
        sealed: sealed))
  }

  /// The upload failed; its session is kept and the claim ends. Written within 250 ms.
  package nonisolated func failed(_ id: Int64, _ message: String) { note(id, .failed(message)) }

  /// The upload was given up because of other files in its push: see `JournalEntry.State.refused`. The claim ends.
  /// Written within 250 ms.
  package nonisolated func refused(_ id: Int64, _ message: String) { note(id, .refused(message)) }

  /// The server has lost the upload: its entry becomes an intent with no acknowledged bytes. Written at once. Claims an
  /// entry that was done.
  package nonisolated func restarted(_ id: Int64) { note(id, .restarted) }

  /// Like `restarted`; what the server may still have becomes a separate entry: see `JournalEntry.isLeftover`.
  nonisolated func abandoned(_ id: Int64) { note(id, .abandoned) }

  /// The entry refers to this version of its source. Also valid for an unclaimed entry that is done. Written within 250
  /// ms.
  package nonisolated func recognized(_ id: Int64, _ validator: Validator) { note(id, .recognized(validator)) }

  /// The claim ends, and the entry stays unfinished. Written within 250 ms.
  package nonisolated func released(_ id: Int64) { note(id, .released) }

  /// The success of an upload that is done may have been the response to another request. The entry is claimed and no
  /// longer done: if this process is killed now, the next run asks the server, or sends the file again. Written at once.
  nonisolated func doubted(_ id: Int64) { note(id, .doubted) }

  /// The server still has the upload of a superseded or doubted entry, which becomes done again. Written within 250 ms.
  nonisolated func kept(_ id: Int64) { note(id, .kept) }

  nonisolated func note(_ id: Int64, _ event: JournalNote.Event) {
    guard let (delay, round) = notes.add(JournalNote(id: id, event: event)) else { return }
    // Unstructured, because the caller must not wait for the writer. It ends within a second and does not retain a
    // closed journal.
    Task { [weak self] in
      // Nothing cancels this task.
      if delay != .none { try? await Task.sleep(for: delay.duration) }
      await self?.writeNotes(of: round)
    }
  }

  private func writeNotes(of round: Int) {
    // The notes stay pending; the next flush or claim tries again, and throws.
    try? commit(notes.take(round: round))
  }
}
