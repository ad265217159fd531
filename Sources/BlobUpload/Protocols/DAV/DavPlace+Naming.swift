import BlobHTTP
import Blobs

extension DavPlace {
  /// MOVE of `temporary` to the file's own name. It may replace a file under the name if `overwrites` is set, and never a
  /// folder.
  ///
  /// On a server that implements `Overwrite: F`, a new name costs this MOVE only. Any other server is queried for the
  /// name before.
  ///
  /// Some servers decode `Destination` twice, and truncate the name at a character that starts a query: they would make or
  /// replace a file with the truncated name. A name with such characters is therefore tried before, with a file of our own.
  /// If that is not possible, it is first moved without replacing; if the server then reports that the name is taken, a file
  /// must exist there, and nothing under the other names that such a server may mean.
  mutating func giveName(
    to temporary: HTTPURL, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) {
    let isSafe = try await isKnownToBeExact(folders, with)
    if !overwrites { return try await move(temporary, to: url, overwrites: false, with) }
    let conditions = folders.conditions
    var isFile = false
    if !conditions.areHeeded || conditions.expectsFile { isFile = try await with.refuseFolder(at: url) }
    if !isFile || !isSafe {
      do throws(UploadError) {
        try await move(temporary, to: url, overwrites: false, with)
        return conditions.note(wasFile: false)
      } catch {
        guard error.status == 412 else { throw error }
      }
      guard try await with.refuseFolder(at: url) else { throw takenByNothing }
      for other in isSafe ? [] : Self.misreadings(of: url) where try await with.resource(at: other) != .nothing {
        throw UploadError(
          .giveUp, .file,
          "\(url): nothing is replaced, since the server may mean \(other), which is there too. \(Self.refusesSuchNames)"
        )
      }
    }
    conditions.note(wasFile: true)
    try await move(temporary, to: url, overwrites: true, with)
  }

  /// The URLs that a server may take `Destination` for, if it decodes the path again, or cuts it where a query, a fragment or
  /// parameters begin. Empty for a plain name.
  private static func misreadings(of url: HTTPURL) -> [HTTPURL] {
    let path = PercentCoding.decoded(url.path.utf8)
    if path.allSatisfy(isPlain) { return [] }
    var found: Set<[UInt8]> = []
    for text in [path, PercentCoding.decoded(path)] {
      for ends in ["", "?#", "?#;"] { found.insert(Array(text.prefix { !ends.utf8.contains($0) })) }
    }
    return found.compactMap { $0 == path || $0.contains(0) ? nil : HTTPURL(url.origin + HTTPURL.encode($0)) }
  }

  // MARK: Trying names

  /// Whether the server is known to take `Destination` for exactly this name. Throws if it is known not to. false: this cannot
  /// be tried, since even the destination's own folder has such characters.
  private mutating func isKnownToBeExact(
    _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    if isPlain { return true }
    guard let folder = plainFolder else { return false }
    let suffix = Self.suffix(with: PercentCoding.decoded(url.path.dropFirst(folder.path.count).utf8))
    let isExact: Bool
    if let known = folders.conditions.isExact(suffix) {
      isExact = known
    } else {
      isExact = try await tryName(with: suffix, in: folder, with)
      folders.conditions.note(isExact: isExact, suffix)
    }
    if isExact { return true }
    throw UploadError(
      .giveUp, .file,
      "\(url): not moved there, since the server would take that for a file of another name. \(Self.refusesSuchNames)")
  }

  /// The nearest folder of the file, within the destination, whose path has no special characters; nil: there is none.
  private var plainFolder: HTTPURL? {
    var folder = url.folder
    while !PercentCoding.decoded(folder.path.utf8).allSatisfy(Self.isPlain) {
      guard folder.path.utf8.count > root.path.utf8.count, let above = folder.resolve("../") else { return nil }
      folder = above
    }
    return folder.path.hasPrefix(root.path) ? folder : nil
  }

  /// Text with the special characters of `name`, each of them once and in their order.
  private static func suffix(with name: [UInt8]) -> [UInt8] {
    var found: [UInt8] = []
    for byte in name where !isPlain(byte) && !found.contains(byte) { found.append(byte) }
    // A server that decodes twice changes a percent sign only before two digits.
    return found.flatMap { $0 == UInt8(ascii: "%") ? Array("%41".utf8) : [$0] } + [UInt8(ascii: "x")]
  }

  /// Moves an empty file of our own to a name of our own that ends with `suffix`. Returns whether it is there then.
  private mutating func tryName(
    with suffix: [UInt8], in folder: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    let source = try await putEmpty(with)
    let name = source.path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.reversed()
    let target = folder.appending(pathBytes: Array(name) + Array("2".utf8) + suffix)
    do throws(UploadError) {
      try await move(source, to: target, overwrites: false, with)
    } catch {
      var error = error
      // This says nothing about the file's own name.
      if error.status == 412 { error.status = nil }
      throw error
    }
    let isExact = try await with.resource(at: target) == .file
    for place in isExact ? [target] : Self.misreadings(of: target) { try await delete(place, with) }
    return isExact
  }
}
