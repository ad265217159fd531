import BlobUpload
import Blobs

/// The options of `push` for hash lists of ASC MHL.
struct HashListOptions: Sendable {
  enum Place: String, CaseIterable, Sendable { case destination, source, both }

  var place = Place.destination
  var format = HashListFormat.usual

  static let declared: [OptionDeclaration] =
    [
      .flag("mhl", "write a hash list of ASC MHL beside the files, from digests made on the way"),
      .value("mhl-at", "destination|source|both", "where the hash list is written; at the destination when not given"),
      .value(
        "mhl-hash", HashListFormat.allCases.map(\.rawValue).joined(separator: "|"),
        "its hash; \(HashListFormat.usual.rawValue) when not given"),
    ].inGroup(.checks)

  /// nil: no list is wanted.
  init?(_ arguments: Arguments, _ options: PushOptions) throws(UsageError) {
    if !arguments.flag("mhl") {
      if try arguments.text("mhl-at") == nil, try arguments.text("mhl-hash") == nil { return nil }
      throw UsageError("--mhl-at and --mhl-hash are for --mhl, which is not given")
    }
    let places = Place.allCases.map(\.rawValue).joined(separator: ", ")
    let formats = HashListFormat.known
    let place = try arguments.parsed("mhl-at", wanted: "one of \(places)") { Place(rawValue: $0) }
    let format = try arguments.parsed("mhl-hash", wanted: "one of \(formats.map(\.rawValue).joined(separator: ", "))") {
      HashListFormat(rawValue: $0).flatMap { formats.contains($0) ? $0 : nil }
    }
    (self.place, self.format) = (place ?? .destination, format ?? .usual)
    try check(options)
  }

  private func check(_ options: PushOptions) throws(UsageError) {
    for options in [options] + options.also {
      if options.seal.sealing != nil {
        throw UsageError(
          "--mhl and --seal: a sealed file has other bytes than its source, so the list would not be of these")
      }
      if options.destination.isForm {
        throw UsageError("--mhl: the receiver of a form decides on names, so a list has no place there")
      }
    }
    if options.edits != nil {
      throw UsageError("--mhl and --edits: the list is of files as they are; leave out one of them")
    }
    if place == .destination { return }
    if !options.hasOnlyFiles || options.layout != nil || options.onConflict == .rename || options.name != nil {
      throw UsageError(
        "--mhl-at \(place.rawValue): the list at the source has the names of the source: leave out --layout, --name, "
          + "--on-conflict rename, and sources that are no folders")
    }
  }
}
