import Blobs

/// Concurrency and rate limits. The journal does not store them, because they suit the network of this run.
struct PaceOptions: Sendable, Hashable {
  /// Maximum number of files sent at the same time; nil: the default.
  var jobs: Int?
  /// Maximum number of parts of one file sent at the same time; nil: the default.
  var partsAtOnce: Int?
  /// Limit for all transfers together, in both directions; nil: no limit.
  var bytesPerSecond: Int64?

  init() {}

  init(_ arguments: Arguments) throws(UsageError) {
    jobs = try arguments.count("jobs", 1...256)
    partsAtOnce = try arguments.count("parts-at-once", 1...64)
    bytesPerSecond = try arguments.parsed("bwlimit", wanted: "a rate in bytes a second, like 20M", Quantity.rate)
  }

  var limiter: RateLimiter? { bytesPerSecond.map { RateLimiter(bytesPerSecond: $0) } }

  static let declared: [OptionDeclaration] = [
    .value("jobs", "N", short: "j", "files at once; when not given up to 64, some 8 of them over 4M"),
    .value("parts-at-once", "N", "parts of one file at once; when not given as many as the link gains by"),
    .value("bwlimit", "RATE", "bytes a second, sent and read back, for all together, like 20M or 50Mbit"),
  ].inGroup(.pace)
}
