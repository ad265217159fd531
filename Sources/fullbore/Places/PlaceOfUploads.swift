import BlobHTTP
import BlobUpload
import Blobs

// The journal knows which place a push named. Later commands take the place's credentials and pace from the file again.
extension Places {
  /// The place to which the uploads of an earlier push go: the one that the push named, if they are still below its URL.
  /// If the push named none, the one with the longest path. nil: there is none. Throws if several places with other
  /// settings have that path.
  func place(of kept: JournalDestination) throws(UsageError) -> Place? {
    let found = all.filter { $0.contains(kept) }
    // Another place that contains the URL may have the credentials of another account.
    if let name = kept.placeName { return found.first { $0.name == name } }
    guard let longest = found.map(\.pathLength).max() else { return nil }
    let nearest = found.filter { $0.pathLength == longest }
    if let first = nearest.first, nearest.allSatisfy({ $0.hasConnection(of: first) }) { return first }
    let names = nearest.map { "'\($0.name)'" }.joined(separator: " and ")
    throw UsageError(
      "\(kept.endpoint): the places \(names) in \(shown(file)) have this URL, and the journal does not say which of them "
        + "the push was for: give the credentials with --token-file, --netrc or --header @FILE, or push to one of them again"
    )
  }
}

extension Place {
  /// Whether the uploads of an earlier push go to this place, so that its credentials belong to them.
  func contains(_ kept: JournalDestination) -> Bool {
    guard let s3 = kept.s3 else { return HTTPURL(kept.endpoint).map(contains) ?? false }
    guard let bucket, bucket.bucket == s3.address.bucket, let prefix = kept.s3Prefix,
      isAtEndpoint(s3.address.endpoint)
    else { return false }
    return bucket.prefix.isEmpty || DestinationChoice.isAtOrBelow(prefix, bucket.prefix)
  }

  /// Whether a push to this place in S3 would go to this endpoint. nil: Amazon's own.
  private func isAtEndpoint(_ endpoint: String?) -> Bool {
    guard let options = try? S3Options(Arguments(self, PlacesCommand.connections)) else { return false }
    if let own = options.endpoint { return own == endpoint }
    guard let profile = options.profile else { return endpoint == nil }
    // If the profile cannot be read, no setting of the place is used.
    return (try? S3Access.endpoint(of: profile)).map { $0 == endpoint } ?? false
  }

  /// Whether two places of one URL lead to the same account over the same connection.
  fileprivate func hasConnection(of other: Place) -> Bool {
    Place.ofServer.allSatisfy { values[$0] == other.values[$0] }
  }
}

extension ConnectionOptions {
  /// The place's options for connections, for uploads that the journal knows.
  init(_ place: Place) throws(UsageError) {
    try self.init(Arguments(place, PlacesCommand.connections))
  }

  /// The options of the place to which the uploads of an earlier push go; nil: none. Throws if the credentials of that push
  /// came from a place that is not there any more.
  func placeOptions(for kept: JournalDestination, _ places: Places? = nil) throws(UploadError) -> ConnectionOptions? {
    // Another server, given with --endpoint now, gets nothing of the place.
    if let endpoint = s3.endpoint, endpoint != kept.s3?.address.endpoint { return nil }
    do throws(UsageError) {
      let places = if let places { places } else { try Places.load() }
      if let place = try places.place(of: kept) {
        let found = try ConnectionOptions(place)
        if kept.s3 != nil, found.hasCredentialsOfHTTP {
          throw UsageError(
            "\(kept.endpoint): the place '\(place.name)' has a token or password, and s3:// is signed with keys: take it out of "
              + "\(shown(places.file))")
        }
        return found
      }
      guard let name = kept.placeName else { return nil }
      let now = places.all.first { $0.name == name }.map { place in
        "\(place.url)\(place.values["endpoint"]?.last.map { " at \(shown($0))" } ?? "") in \(shown(places.file)) now"
      }
      throw UsageError(
        "\(kept.endpoint): the credentials of this push were those of the place '\(name)', which is "
          + "\(now ?? "not in \(shown(places.file)) any more"): nothing was done. Give them with --token-file, --netrc or "
          + "--header @FILE, or mend that file")
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
  }
}

extension PaceOptions {
  /// These options, completed with those of the place of the uploads.
  func completed(for kept: JournalDestination) throws(UploadError) -> PaceOptions {
    do throws(UsageError) {
      let places = try Places.load()
      // If several places have this URL, none of them is used. Code that needs credentials of one of them reports an
      // error.
      guard let place = try? places.place(of: kept) else { return self }
      let found = try PaceOptions(Arguments(place, PlacesCommand.connections))
      var result = self
      result.jobs = jobs ?? found.jobs
      result.partsAtOnce = partsAtOnce ?? found.partsAtOnce
      result.bytesPerSecond = bytesPerSecond ?? found.bytesPerSecond
      return result
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
  }
}
