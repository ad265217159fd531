import BlobHTTP
import BlobUpload
import Blobs

/// Which of the journal's destinations a command is for: all of them, or those at and below a URL.
struct DestinationChoice: Sendable {
  /// nil: all of them.
  private let place: HTTPURL?

  init(_ operands: [BytePath]) throws(UsageError) {
    guard let given = operands.first else {
      place = nil
      return
    }
    let text = given.description
    let plus = text.firstRange(of: "+http")
    guard operands.count == 1, let url = HTTPURL(plus.map { String(text[$0.lowerBound...].dropFirst()) } ?? text)
    else {
      throw UsageError("'\(shown(given.withoutSecrets))': wanted one destination's URL, as 'fullbore status' shows it")
    }
    place = url
  }

  func contains(_ kept: JournalDestination) -> Bool {
    guard let place else { return true }
    guard let endpoint = HTTPURL(kept.endpoint), endpoint.origin == place.origin else { return false }
    let folder = place.path.hasSuffix("/") ? place.path : place.path + "/"
    return endpoint.path == place.path || endpoint.path.hasPrefix(folder)
  }

  /// The destination with the query that was given again, where the journal does not keep one.
  func completed(_ kept: JournalDestination) throws(UploadError) -> JournalDestination {
    guard kept.hidesQuery == true else { return kept }
    guard let place, let query = place.query, HTTPURL(kept.endpoint)?.path == place.path else {
      throw UploadError(
        .giveUp, .file,
        "the query of \(kept.endpoint)?… is not kept, since it may be a secret: give the URL again, as in "
          + "'fullbore resume \(kept.endpoint)?…'")
    }
    var kept = kept
    kept.endpoint += "?\(query)"
    return kept
  }
}

extension ConnectionOptions {
  /// Something was given that is meant for one server: credentials, whom to trust, where a bucket is.
  private var isForOneServer: Bool {
    tokenFile != nil || netrcFile != nil || !headers.isEmpty || certificates != nil || isInsecure || s3 != S3Options()
  }

  /// Refuses to take what was given for one server to several. `hint` says how to name one of them.
  func check(isForAll destinations: [JournalDestination], _ hint: String) throws(UsageError) {
    guard isForOneServer else { return }
    let origins = Set(destinations.compactMap { HTTPURL($0.endpoint)?.origin }).sorted()
    if origins.count < 2 { return }
    throw UsageError(
      "credentials, certificates and S3 options are for one server, and this concerns \(origins.count): "
        + "\(origins.joined(separator: ", ")). \(hint)")
  }
}
