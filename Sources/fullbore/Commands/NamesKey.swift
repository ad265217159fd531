import BlobClient
import BlobUpload
import Blobs

// The key of the names that a push with `--seal-names` gives its files.
extension SealOptions {
  /// The sealing of a push to a destination that has responded, with its key of the names. nil: nothing is sealed. The key
  /// is that of the journal, else that of an index at the destination, else a new one unless `isCheck`.
  func sealing(
    at destination: UploadDestination, _ transport: SocketTransport, _ journal: Journal, _ report: any PushReport,
    isCheck: Bool
  ) async throws(UploadError) -> Sealing? {
    guard hasNames, var sealing else { return self.sealing }
    let place = destination.place
    do throws(JournalError) { sealing.names = try await journal.sealedNames.key(at: place) } catch {
      throw UploadError(journal: error)
    }
    if sealing.names != nil { return sealing }
    let files = StoredFiles(Uploader(destination, transport: transport), reading: transport)
    let all = identities + passphraseIdentities
    var (found, isUnlisted): (SealedNames?, Bool) = (nil, false)
    if !all.isEmpty {
      do throws(UploadError) { found = try await files.namesKey(all) } catch {
        isUnlisted = error.cause is UnlistedFolder
        // A passphrase does not say that files were sent there before.
        if !isUnlisted || !identities.isEmpty || isCheck {
          throw Self.unread(error, at: place, isUnlisted: isUnlisted, isCheck: isCheck)
        }
      }
    }
    if found == nil, isCheck {
      throw UploadError(
        .giveUp, .file,
        "\(place): this journal has no key of the names there, so what the files are called there is not known: name the "
          + "journal of the push with --journal, or give --identity FILE, with which the key is read from an index there"
      )
    }
    let names: SealedNames
    do throws(JournalError) { names = try await journal.sealedNames.keep(found, at: place) } catch {
      throw UploadError(journal: error)
    }
    sealing.names = names
    report.notice(
      found != nil
        ? "\(place): the key of the names is taken from an index there"
        : "\(place): a new key of the names is made and kept beside the journal. Files that another journal has sent there are "
          + "sent again under other names"
          + (isUnlisted
            ? ": this server lists no files, so that the key cannot be read from an index there"
            : ", unless --identity FILE is given in the first push, to read the key from their index"))
    return sealing
  }

  private static func unread(
    _ error: UploadError, at place: String, isUnlisted: Bool, isCheck: Bool
  ) -> UploadError {
    var error = error
    error.message = "\(place): the key of the names is to be read from an index there: \(error.message)"
    guard isUnlisted else { return error }
    error.side = .file
    error.message += ". Name the journal that has sent files there with --journal"
    if isCheck { return error }
    error.message +=
      ", or leave --identity out: then a new key is made, and what was sent before is sent again under other names"
    return error
  }

  /// The sealing of an earlier push, with its key of the names.
  static func sealing(of begun: JournalDestination, _ journal: Journal) async throws(UploadError) -> Sealing? {
    let kept = try sealing(begun.seal)
    guard var sealing = kept, begun.seal?.names == true else { return kept }
    do throws(JournalError) { sealing.names = try await journal.sealedNames.key(at: begun.place) } catch {
      throw UploadError(journal: error)
    }
    if sealing.names != nil { return sealing }
    throw UploadError(
      .giveUp, .journal,
      "\(begun.place): the key of the names, which was beside the journal \(journal.path), is gone: run the push again with "
        + "--identity FILE, which reads it from an index there")
  }
}
