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
        + "<Size>\(state.objects[key]?.bytes.count ?? 0)</Size></Contents>"
    }
    let next =
      all.count > most
      ? "<NextContinuationToken>\(S3Text.escaped(all[most - 1]))</NextContinuationToken>" : ""
    return .xml(
      "<ListBucketResult>\(encodes ? "<EncodingType>url</EncodingType>" : "")<IsTruncated>\(all.count > most)</IsTruncated>"
        + "\(next)\(contents.joined())</ListBucketResult>")
  }
}
