import TestSupport

/// The field of a request for a member of a group.
func groupField(_ position: Int, of members: Int, id: String = "shot") -> (String, String) {
  ("Fullbore-Group", "\"\(id)\"; members=\(members); position=\(position)")
}

/// The same in the metadata of tus, to follow others.
func groupMetadata(_ position: Int, of members: Int, id: String = "shot") -> String {
  ",group \(base64(id)),group-size \(base64("\(members)")),group-position \(base64("\(position)"))"
}

extension TestServer {
  /// Sends a member of a group by tus, with the request that creates the upload. `more`: other metadata.
  func send(
    _ name: String, _ bytes: [UInt8], position: Int, of members: Int, id: String = "shot", more: String = "",
    _ headers: [(String, String)] = []
  ) throws -> RawHTTPClient.Answer {
    try ask(
      "POST", "/",
      [
        tus, ("Content-Type", octets), ("Upload-Length", "\(bytes.count)"),
        ("Upload-Metadata", "filename \(base64(name))" + groupMetadata(position, of: members, id: id) + more),
      ] + headers, body: bytes)
  }
}
