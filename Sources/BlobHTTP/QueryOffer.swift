import Blobs

/// The field `Accept-Query` of a Fullbore server: the kind of list that its QUERY takes, and the digests that it tells in
/// response to QUERY and to HEAD. draft-ietf-httpbis-safe-method-w-body §3.
package enum QueryOffer {
  package static let field = "Accept-Query"
  /// The media type of the body of a QUERY: names of files.
  package static let names = "application/vnd.fullbore.names"
  private static let parameter = "digests"

  package static func text(_ algorithms: [DigestAlgorithm]) -> String {
    "\(names);\(parameter)=\"\(algorithms.map { DigestField.key(of: $0) }.joined(separator: " "))\""
  }

  /// The algorithms that a response offers, of those that have a name here; empty: it offers no such QUERY.
  package static func digests(_ headers: HTTPHeaders) -> [DigestAlgorithm] {
    for member in headers.list(field) {
      let parts = member.split(separator: ";").map { Substring($0).trimmed }
      guard let type = parts.first, type.isSameField(names),
        let value = parts.dropFirst().first(where: { $0.hasPrefix("\(parameter)=\"") && $0.hasSuffix("\"") })
      else { continue }
      let told = value.dropFirst(parameter.utf8.count + 2).dropLast().split(separator: " ")
      return DigestAlgorithm.all.filter { told.contains(Substring(DigestField.key(of: $0))) }
    }
    return []
  }
}
