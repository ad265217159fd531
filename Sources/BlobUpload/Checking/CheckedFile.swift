import BlobCrypto
import BlobHTTP
import Blobs

/// The result of comparing a source with the file at the destination.
package struct CheckedFile: Sendable {
  package enum Result: Sendable, Hashable {
    /// All that could be compared is equal: digests, bytes, or nothing but the lengths.
    case same(StoredEvidence)
    case missing
    /// How the two differ.
    case different(String)
    /// The source cannot be read, or has changed meanwhile.
    case unreadable(String)
    /// The destination does not tell enough.
    case notComparable(String)

    var isDifferent: Bool { if case .different = self { true } else { false } }
  }
  /// With the name that the file has at the destination.
  package var item: UploadItem
  /// From the `UploadResult` of the push that has sent it; nil: the journal knows none.
  var location: String?
  package var result: Result
  /// The two were compared in an earlier run, and neither has changed since.
  package var wasKnown = false
  /// The versions that the journal keeps as compared; nil: it keeps none.
  var compared: ComparedVersion?
}

extension ContentCheck {
  /// Throws if no other item can be compared.
  func check(
    _ file: PlacedItem, _ known: ComparedVersion?, _ told: VersionQuery.Answer?
  ) async throws(UploadError) -> CheckedFile {
    var checked = CheckedFile(item: file.item, location: file.location, result: .missing)
    do {
      guard let found = try await find(file, told) else { return checked }
      if let known, known.remote == found.version, found.length == file.item.info.length {
        checked.result = .same(known.isReadBack ? .bytes : .digest)
        checked.wasKnown = true
        return checked
      }
      checked.result = try await compare(file, found)
      if case .same(let evidence) = checked.result, evidence != .length, let version = found.version,
        let validator = file.item.info.validator
      {
        checked.compared = ComparedVersion(source: validator, remote: version, isReadBack: evidence == .bytes)
      }
    } catch {
      if error.endsQueue { throw error }
      checked.result =
        error.side == .source
        ? .unreadable(error.message) : error.saysOtherBytes ? .different(error.message) : .notComparable(error.message)
    }
    return checked
  }

  /// Reads a file at the destination and compares it with `source`, byte by byte. Throws if it is not there, or another one.
  package func readBack(
    _ file: CheckedFile, from source: any BlobSource, _ info: BlobInfo
  ) async throws(UploadError) {
    try await uploader.verify(source, info, at: file.item.target, location: file.location)
  }

  private func find(_ file: PlacedItem, _ told: VersionQuery.Answer?) async throws(UploadError) -> RemoteFile? {
    let target = file.item.target
    switch told {
    case .file(let found): return found
    case .nothing: return nil
    case .refused(let status):
      throw UploadError(.giveUp, .file, "\(target.url): the server does not tell of it (\(status))", status: status)
    case nil, .folder:
      return try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await uploader.destination.uploadProtocol.remoteFile(target, location: file.location, uploader.context())
      }
    }
  }

  private func compare(_ file: PlacedItem, _ found: RemoteFile) async throws(UploadError) -> CheckedFile.Result {
    let (item, target) = (file.item, file.item.target)
    if let length = item.info.length, let theirs = found.length, length != theirs {
      return .different("it has \(theirs) bytes there, and \(length) here")
    }
    if downloads {
      try await uploader.verify(item.source, item.info, at: target, location: file.location)
      return .same(.bytes)
    }
    let whole = BlobSlice(item.source, length: item.info.length, validator: item.info.validator)
    if let theirs = found.sha256, whole.canBeReadTwice {
      let ours = try await digests(of: whole, [.sha256], noteRead: uploader.compared ?? { _ in })[0]
      return ours == theirs ? .same(.digest) : .different("its SHA-256 there is another one")
    }
    let isSame = try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
      try await uploader.destination.uploadProtocol.hasSameBytes(as: whole, target, uploader.context())
    }
    if let isSame { return isSame ? .same(.digest) : .different("its checksum there is another one") }
    if item.info.length != nil, found.length != nil { return .same(.length) }
    return .notComparable("the destination tells neither its length nor a checksum")
  }
}
