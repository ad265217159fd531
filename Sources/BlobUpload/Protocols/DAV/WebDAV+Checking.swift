import BlobCrypto
import BlobHTTP
import Blobs

// Comparing files with those at a WebDAV server.
extension WebDAV {
  private static let checksums =
    "<?xml version=\"1.0\"?><d:propfind xmlns:d=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\"><d:prop><oc:checksums/></d:prop>"
    + "</d:propfind>"

  /// Compares with a checksum that Nextcloud or ownCloud keeps, if there is one. These servers keep the checksum that the
  /// sending program has told; they have compared it with the bytes, if at all, when these arrived.
  public func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    guard NextcloudChunks.isSpoken(at: target.endpoint), whole.canBeReadTwice else { return nil }
    var request = HTTPRequest("PROPFIND", target.url, ["Depth": "0", "Content-Type": "application/xml"])
    let response = try await with.send(following: &request, body: BlobSlice(DataSource(Array(Self.checksums.utf8))))
    guard response.status == 207, let tree = XMLTree(response.body) else { return nil }
    for (algorithm, value) in tree.davChecksums {
      let ours = try await digests(of: whole, [algorithm], noteRead: with.server.compared)[0]
      return Digest.hex(ours) == value
    }
    return nil
  }

  /// PROPFIND. A server that does not take it, as nginx does not, lists nothing.
  public func listEntries(
    in folder: HTTPURL, _ with: UploadContext, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool {
    var request = HTTPRequest("PROPFIND", folder, ["Depth": "1"])
    let listing = DavListingText()
    let response = try await with.send(
      following: &request, Exchange(received: { bytes throws(BlobError) in try listing.append(bytes) }))
    try with.checkListing(request, response)
    guard response.status == 207 else { return false }
    try await take(DavListing.entries(in: listing.text, of: request.url))
    return true
  }
}

extension XMLTree {
  /// The checksums of the first resource that has any, in hexadecimal: `SHA1:… MD5:… ADLER32:…`.
  fileprivate var davChecksums: [(Digest.Algorithm, String)] {
    for state in self["response"]?.all("propstat") ?? [] {
      guard let text = state["prop"]?["checksums"]?.text("checksum") else { continue }
      return text.split(separator: " ").compactMap { word in
        let parts = word.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let algorithm = Digest.Algorithm(parts[0].lowercased()) else { return nil }
        return (algorithm, parts[1].lowercased())
      }
    }
    return []
  }
}
