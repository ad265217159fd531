import BlobHTTP
import BlobUpload
import Blobs

/// The destinations of the journal that a command applies to: all of them, or those at and below a URL.
struct DestinationChoice: Sendable {
  private enum Place: Sendable {
    case url(HTTPURL)
    /// A bucket on any server, and a prefix in it.
    case s3(Destination.S3Name)
  }

  /// nil: all destinations.
  private let place: Place?
  /// As the user wrote it, without secrets.
  private let given: String

  init(_ operands: [BytePath]) throws(UsageError) {
    guard let first = operands.first else {
      (place, given) = (nil, "")
      return
    }
    let text = first.description
    given = shown(first.withoutSecrets)
    let wanted =
      "'\(given)': wanted one destination's URL, as 'fullbore status' shows it, s3://bucket/prefix "
      + "or gs://bucket/prefix"
    if operands.count > 1 { throw UsageError(wanted) }
    if text.lowercased().hasPrefix("s3://") {
      place = .s3(try Destination.s3(first.bytes.dropFirst("s3://".utf8.count), "destination '\(given)'"))
      return
    }
    if KnownProtocols.shorthand(String(text.lowercased().prefix { $0 != ":" })) != nil {
      place = .url(try Destination(first).endpoint)
      return
    }
    let plus = text.firstRange(of: "+http")
    guard let url = HTTPURL(plus.map { String(text[$0.lowerBound...].dropFirst()) } ?? text)?.withASCIIHost else {
      throw UsageError(wanted)
    }
    place = .url(url)
  }

  func contains(_ kept: JournalDestination) -> Bool {
    switch place {
    case nil: return true
    case .url(let place):
      guard let endpoint = HTTPURL(kept.endpoint), endpoint.origin == place.origin else { return false }
      // A query that is given chooses among the pushes to the very same URL.
      let (path, wanted) = (endpoint.normalized.path, place.normalized.path)
      if path == wanted, let query = place.query, let digest = kept.queryDigest {
        return JournalDestination(endpoint: "\(kept.endpoint)?\(query)", protocolName: "").queryDigest == digest
      }
      return Self.isAtOrBelow(Array(path.utf8), Array(wanted.utf8))
    case .s3(let place):
      guard let s3 = kept.s3, s3.address.bucket == place.bucket, let prefix = kept.s3Prefix else { return false }
      return place.prefix.isEmpty || Self.isAtOrBelow(prefix, place.prefix)
    }
  }

  static func isAtOrBelow(_ path: [UInt8], _ place: [UInt8]) -> Bool {
    path == place || path.starts(with: place.last == UInt8(ascii: "/") ? place : place + [UInt8(ascii: "/")])
  }

  /// Throws if the journal has no push to this destination, and lists the known ones.
  func check(isAmong known: [JournalDestination]) throws(UsageError) {
    if place == nil || known.contains(where: contains) { return }
    let names = Set(known.map(\.endpoint)).sorted()
    let most = 10
    let more = names.count > most ? " and \(names.count - most) more" : ""
    throw UsageError(
      "the journal knows of no push to '\(given)'"
        + (names.isEmpty
          ? ", nor to any other destination" : "; it knows \(names.prefix(most).joined(separator: ", "))\(more)"))
  }

  /// Adds the query that the user gave again, if the journal does not contain it.
  func completed(_ kept: JournalDestination) throws(UploadError) -> JournalDestination {
    guard kept.hidesQuery == true else { return kept }
    guard case .url(let place) = place, place.query != nil,
      HTTPURL(kept.endpoint)?.normalized.path == place.normalized.path
    else {
      throw UploadError(
        .giveUp, .file,
        "the query of \(kept.endpoint)?… is not kept, since it may be a secret: give the URL again, as in "
          + "'fullbore resume \(kept.endpoint)?…'")
    }
    var kept = kept
    // A signature may be of the path as it is written now.
    kept.endpoint = place.text
    return kept
  }
}

extension JournalDestination {
  /// The prefix in the bucket, as bytes; nil: not S3, or the bucket has no URL.
  var s3Prefix: [UInt8]? {
    guard let bucket = s3?.address.url, let endpoint = HTTPURL(endpoint) else { return nil }
    return PercentCoding.decoded(endpoint.path.utf8.dropFirst(bucket.path.utf8.count))
  }
}

extension PushOptions {
  /// The destination as far as the command line gives it: the journal stores it before the server has responded.
  var destinationBeforeAnswer: JournalDestination {
    var endpoint = destination.endpoint
    // Two pushes of standard input are distinguished by their destination URLs.
    if readsStandardInput, destination.isFolder, let name {
      endpoint = endpoint.folder.appending(pathBytes: name.bytes)
    }
    // A file that cannot be read now ends the push when it starts.
    let form = destination.isForm ? try? form.post() : nil
    let headers = try? connection.requestHeaders(for: endpoint)
    return JournalDestination(
      endpoint: endpoint.text, protocolName: destination.protocolName ?? "",
      s3: destination.address.map { S3Location($0) },
      recipient: form.flatMap { UploadDestination.recipient(of: endpoint, $0) },
      account: headers.map { UploadDestination.account(of: $0, named: connection.account) })
  }
}

extension ConnectionOptions {
  /// Whether options that apply to one server only were given: credentials, certificates, the location of a bucket.
  private var isForOneServer: Bool {
    tokenFile != nil || netrcFile != nil || !headers.isEmpty || certificates != nil || isInsecure || s3.areGiven
  }

  /// Throws if such options would be used for several servers. `hint` says how to select one of them.
  func check(isForAll destinations: [JournalDestination], _ hint: String) throws(UsageError) {
    guard isForOneServer else { return }
    let origins = Set(destinations.compactMap { HTTPURL($0.endpoint)?.origin }).sorted()
    if origins.count < 2 { return }
    throw UsageError(
      "credentials, certificates and S3 options are for one server, and this concerns \(origins.count): "
        + "\(origins.joined(separator: ", ")). \(hint)")
  }
}
