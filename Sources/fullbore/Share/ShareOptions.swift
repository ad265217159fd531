import BlobServer
import Blobs
import Platform

/// The options of `serve` that are for browsers of people nearby.
struct ShareOptions: Sendable {
  /// How long the server runs; nil: until it is stopped.
  let period: Duration?
  /// Whether the server ends after the first visit.
  let endsAfterVisit: Bool

  /// When the server ends, in a sentence for the person who has started it.
  var end: String {
    let time = period.map { "at \(Self.clock(after: $0))" }
    let visit = endsAfterVisit ? "30 s after a visitor who has sent or fetched something is done" : nil
    let ends = [time, visit].compactMap { $0 }
    return ends.isEmpty ? "Ctrl-C ends it." : "It ends \(ends.joined(separator: ", or ")); Ctrl-C ends it before."
  }

  /// The local time after a period from now on; a day or more with the date.
  private static func clock(after period: Duration) -> String {
    let seconds = Int(clamping: period.components.seconds)
    return LocalTime.text(
      Int64(time(nil)).addingClamped(Int64(seconds)), seconds < 86_400 ? "%H:%M" : "%Y-%m-%d %H:%M")
  }

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
