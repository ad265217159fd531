import Blobs

/// Ranges of objects. RFC 9110 §14.
enum S3PeerRange {
  /// The range that the request wants, as `bytes=FIRST-[LAST]`, if it is of this version (`If-Range`).
  static func part(of whole: S3PeerResponse, for request: S3PeerRequest) throws -> S3PeerResponse {
    guard let range = request.fields["range"], range.hasPrefix("bytes=") else { return whole }
    let tag = whole.fields.first { $0.0 == "ETag" }?.1
    if let condition = request.fields["if-range"], condition != tag { return whole }
    let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int(ends[0]) else { return whole }
    let count = whole.body.count
    guard first < count else { throw S3PeerError(416, "InvalidRange") }
    let last = min(Int(ends[1]) ?? count - 1, count - 1)
    var part = whole
    (part.status, part.body) = (206, Array(whole.body[first...last]))
    part.fields.append(("Content-Range", "bytes \(first)-\(last)/\(count)"))
    return part
  }
}
