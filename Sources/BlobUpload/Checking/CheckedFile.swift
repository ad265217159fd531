import BlobCrypto
import BlobHTTP
import Blobs

/// The result of comparing a source with the file at the destination.
package struct CheckedFile: Sendable {
  package enum Result: Sendable, Hashable {
    /// All that could be compared is equal: digests, bytes, or nothing but the lengths.
    case same(StoredEvidence)
    case missing
    /// The file is missing, and a sealed one is there, which has this path.
    case sealed(BytePath)
    /// How the two differ.
    case different(String)
    /// The source cannot be read, or has changed meanwhile.
    case unreadable(String)
    /// The destination does not tell enough.
    case notComparable(String)

    package var isDifferent: Bool { if case .different = self { true } else { false } }
  }
  /// With the name that the file has at the destination.
  package var item: UploadItem
  /// From the `UploadResult` of the push that has sent it; nil: the journal knows none.
  var location: String?
  /// As `PlacedItem.entry`.
  var entry: Int64?
  package var result: Result
  /// The two were compared in an earlier run, and neither has changed since.
  package var wasKnown = false
  /// When that was, in seconds since 1970; nil: the two were compared now.
  package var noted: Int64?
  /// The versions that the journal keeps as compared; nil: it keeps none.
  var compared: ComparedVersion?
}

extension ContentCheck {
  /// Throws if no other item can be compared. `isSealed`: whether a sealed file is there instead; nil: it is not known.
  func check(
    _ file: PlacedItem, _ known: ComparedVersion?, _ told: VersionQuery.Answer?, isSealed: Bool?
  ) async throws(UploadError) -> CheckedFile {
    var checked = CheckedFile(item: file.item, location: file.location, entry: file.entry, result: .missing)
    do {
      guard let found = try await find(file, told) else {
        if let sealed = try await sealed(instead: file.item, isSealed) { checked.result = .sealed(sealed) }
        return checked
      }
      if let known, known.remote == found.version, found.length == file.item.info.length {
        checked.result = .same(known.isReadBack ? .bytes : .digest)
        (checked.wasKnown, checked.noted) = (true, known.noted)
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
    if checked.result.isDifferent, try await isContinued(file.item) { checked.result = .same(.digest) }
    return checked
  }

  /// Whether there is a file at the destination, which nobody has sent. A file that the destination does not report
  /// does not count.
  package func isThere(_ target: UploadTarget) async throws(UploadError) -> Bool {
    do throws(UploadError) {
      return try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await uploader.destination.uploadProtocol.remoteFile(target, location: nil, uploader.context())
      } != nil
    } catch {
      if error.endsQueue { throw error }
      return false
    }
  }

  /// As above, with a path below the destination's folder.
  package func isThere(_ path: BytePath) async throws(UploadError) -> Bool {
    try await isThere(uploader.destination.target(path, length: nil))
  }

  /// Whether the first byte of a file that was found equal can be read at the destination now, and its length is the same.
  package func isReadable(_ file: CheckedFile) async throws(UploadError) -> Bool {
    let target = file.item.target
    let found = try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
      let context = uploader.context()
      let place = try await uploader.destination.uploadProtocol.place(of: target, location: file.location, context)
      return try await context.lengthByGet(of: place, expecting: target.length)
    }
    return switch found {
    case .found(let length): length == nil || length == target.length
    case .noContent: target.length == 0
    case .missing, .hidden: false
    }
  }

  /// The path of the sealed file that is there in the place of a missing one; nil: there is none.
  private func sealed(instead item: UploadItem, _ isThere: Bool?) async throws(UploadError) -> BytePath? {
    // A URL with a query is that of one file.
    if item.isSealed || uploader.destination.endpoint.query != nil { return nil }
    let target = uploader.destination.target(
      BytePath(item.target.path.bytes + Sealing.ending.bytes), length: nil)
    let isFound = if let isThere { isThere } else { try await self.isThere(target) }
    return isFound ? target.path : nil
  }

  func find(_ file: PlacedItem, _ told: VersionQuery.Answer?) async throws(UploadError) -> RemoteFile? {
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
      let expected: ExpectedContent =
        if let sealed = item.sealed {
          .sealed(of: BlobSlice(sealed.plain, validator: item.info.validator), with: identities)
        } else {
          .bytes(of: BlobSlice(item.source, length: item.info.length, validator: item.info.validator))
        }
      _ = try await uploader.verify(expected, at: target, location: file.location)
      return .same(.bytes)
    }
    do throws(UploadError) {
      if let told = try await compareDigests(item, found) { return told }
    } catch {
      if !error.isOfLostKey { throw error }
      // No version of the object but the one that was compared with its checksum when it was stored has this name.
      if let sent = file.content?.version, sent == found.version?.split(separator: " ").first.map({ String($0) }) {
        return .same(.digest)
      }
    }
    if item.info.length != nil, found.length != nil { return .same(.length) }
    return .notComparable(
      item.info.length == nil
        ? "its length here is known only once it has been read, and the destination tells no checksum: --download compares "
          + "all bytes"
        : "the destination tells neither its length nor a checksum")
  }

  /// nil: the destination tells no digest that can be compared.
  private func compareDigests(
    _ item: UploadItem, _ found: RemoteFile
  ) async throws(UploadError) -> CheckedFile.Result? {
    let target = item.target
    let whole = BlobSlice(item.source, length: item.info.length, validator: item.info.validator)
    let algorithm = whole.digestToCompare
    // A source that can be read only from its beginning is read once here, as nothing is sent. The bytes that are sealed
    // anew each time are others than those that were sent.
    if let theirs = found.digest(algorithm), whole.canBeReadTwice || !item.isSealed {
      let ours = try await digests(of: whole, [algorithm], noteRead: uploader.compared ?? { _ in })[0]
      let name = DigestField.key(of: algorithm).uppercased()
      return ours == theirs ? .same(.digest) : .different("its \(name) there is another one")
    }
    let isSame = try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
      try await uploader.destination.uploadProtocol.hasSameBytes(as: whole, target, uploader.context())
    }
    return isSame.map { $0 ? .same(.digest) : .different("its checksum there is another one") }
  }
}
