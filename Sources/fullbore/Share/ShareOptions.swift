import BlobServer
import Blobs

/// The options of `serve` that are for browsers of people nearby.
struct ShareOptions: Sendable {
  /// How long the server runs; nil: until it is stopped.
  let period: Duration?
  /// Whether the server ends after the first visit.
  let endsAfterVisit: Bool

  static let declared: [OptionDeclaration] = [
    .flag("share", "for phones nearby: show a QR code that opens a page with which a browser sends files"),
    .value("for", "DURATION", "with --share: end after this time, like 2h"),
    .flag("once", "with --share: end when the first visitor has sent or fetched something and is done"),
    .flag("receive-only", "show nobody what is in FOLDER: no lists, no files"),
    .flag("download", "with --share: files can be fetched too, and not only be sent and listed"),
  ]

  /// nil: `--share` was not given.
  init?(_ arguments: Arguments, _ options: inout ServerOptions) throws(UsageError) {
    let isReceiveOnly = arguments.flag("receive-only")
    if isReceiveOnly {
      if arguments.flag("read-only") { throw UsageError("--receive-only and --read-only: nothing would be left to do") }
      if arguments.flag("download") { throw UsageError("--receive-only and --download exclude each other") }
      options.reading = .nothing
    }
    guard arguments.flag("share") else {
      for name in ["once", "download"] where arguments.flag(name) { throw UsageError("--\(name) belongs to --share") }
      if arguments.value("for") != nil { throw UsageError("--for belongs to --share") }
      return nil
    }
    if arguments.flag("read-only"), !arguments.flag("download") {
      throw UsageError("--share --read-only needs --download: otherwise nothing could be sent nor fetched")
    }
    period = try arguments.parsed("for", wanted: "a duration of 1s or more, like 2h", Quantity.secondOrMore)
    endsAfterVisit = arguments.flag("once")
    if !isReceiveOnly { options.reading = arguments.flag("download") ? .files : .names }
  }
}
