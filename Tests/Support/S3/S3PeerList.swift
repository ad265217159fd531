import BlobHTTP

/// Lists the objects of the peer's bucket by ListObjectsV2, with prefix and delimiter.
struct S3PeerList {
  private let state: S3PeerState
  private let options: S3Peer.Options

  init(_ state: S3PeerState, _ options: S3Peer.Options) { (self.state, self.options) = (state, options) }

  func answer(_ request: S3PeerRequest) -> S3PeerResponse {
    let (prefix, after) = (request.query("prefix") ?? "", request.query("continuation-token") ?? "")
    let most = min(options.page, request.query("max-keys").flatMap { Int($0) } ?? 1000)
    let delimiter = request.query("delimiter")
    let all = state.objects.keys.filter { key in
      guard key.hasPrefix(prefix), key > after else { return false }
      return delimiter.map { !key.dropFirst(prefix.count).contains($0) } ?? true
    }.sorted()
    let encodes = request.query("encoding-type") == "url"
    let contents = all.prefix(most).map { key in
      "<Contents><Key>\(encodes ? HTTPURL.encode(key.utf8) : S3Text.escaped(key))</Key>"
        + "<Size>\(state.objects[key]?.bytes.count ?? 0)</Size>"
        + "<LastModified>\(S3Text.date(state.objects[key]?.made ?? 0))</LastModified></Contents>"
    }
    let next =
      all.count > most
      ? "<NextContinuationToken>\(S3Text.escaped(all[most - 1]))</NextContinuationToken>" : ""
    // Amazon counts the folders as entries of a page; here they come with the first one.
    let folders = after.isEmpty ? Set(state.objects.keys.compactMap { folder(of: $0, prefix, delimiter) }) : []
    let prefixes = folders.sorted().map { folder in
      "<CommonPrefixes><Prefix>\(encodes ? HTTPURL.encode(folder.utf8) : S3Text.escaped(folder))</Prefix></CommonPrefixes>"
    }
    return .xml(
      "<ListBucketResult>\(encodes ? "<EncodingType>url</EncodingType>" : "")<IsTruncated>\(all.count > most)</IsTruncated>"
        + "\(next)\(contents.joined())\(prefixes.joined())</ListBucketResult>")
  }

  /// The part of a key up to the first delimiter after the prefix; nil: it has none there.
  private func folder(of key: String, _ prefix: String, _ delimiter: String?) -> String? {
    guard let delimiter, key.hasPrefix(prefix), let end = key.dropFirst(prefix.count).firstRange(of: delimiter) else {
      return nil
    }
    return String(key[..<end.upperBound])
  }
}
