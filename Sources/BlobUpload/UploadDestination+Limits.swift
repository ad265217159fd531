extension UploadDestination {
  /// Maximum number of parts, of all files, that are sent at the same time, so that many large files do not open a
  /// hundred connections.
  static let mostParts = 16

  /// No body is made smaller than this: a server that accepts even less cannot receive files.
  static let smallestBody: Int64 = 64 << 10

  /// Maximum number of requests for one file if the server accepts less than `smallestBody` in each.
  static let mostSmallBodies: Int64 = 10_000

  /// The server's limits, reduced to the body size that gets through: a proxy on the way may accept less. It is read
  /// for each file; inlined, it does not copy the destination.
  @inline(__always) var currentLimits: PartLimits {
    var limits = limits
    let most = acquaintance.largestBody.load(ordering: .relaxed)
    if most == .max { return limits }
    limits.largest = min(limits.largest ?? most, most)
    // If the whole file goes in one request, it cannot be split.
    if limits.firstPart != .max { limits.firstPart = min(limits.firstPart, most) }
    return limits
  }

  /// `currentLimits`, and those of an upload; `session` nil: there is none yet.
  func limits(of session: UploadSession?) -> PartLimits {
    var limits = currentLimits
    if let session { limits.tighten(by: session.limits) }
    return limits
  }

  /// Sets the largest body that an earlier run found to get through.
  func expect(largestBody: Int64) { acquaintance.largestBody.min(max(1, largestBody), ordering: .relaxed) }

  /// Called when a body of `size` bytes was refused. Returns the size in bytes that every upload to this host may send
  /// from now on; nil: the size is not the reason, or it cannot be smaller. `most` is the limit that the server
  /// reports.
  ///
  /// The sizes are powers of 4, so that usual limits are found in few steps, and a size is at least a quarter of the
  /// limit.
  func shrink(below size: Int64, to most: Int64?) -> Int64? {
    // A request without a body cannot have been too large.
    if size <= 0 { return nil }
    let known = acquaintance.largestBody.load(ordering: .relaxed)
    // Another upload was refused before, while this body was already being sent.
    if known < size { return known }
    var next = Self.smallestBody << 10
    while next >= size { next >>= 2 }
    if let most, most > 0, most < size, size / most <= Self.mostSmallBodies { next = most }
    if next < Self.smallestBody && next != most { return nil }
    expect(largestBody: next)
    return next
  }
}

extension PartLimits {
  /// Throws if the server accepts so few bytes per request that the file would need too many requests. `length` nil: it
  /// is unknown.
  func checkCount(_ next: Part, of length: Int64?) throws(UploadError) {
    guard let largest, largest < UploadDestination.smallestBody else { return }
    let count = length.map { ($0 - next.start) / max(1, largest) } ?? Int64(next.number)
    if count <= UploadDestination.mostSmallBodies { return }
    throw UploadError(
      .giveUp, .file,
      "the server takes only \(largest) bytes in one request (max-append-size), which would make more than "
        + "\(UploadDestination.mostSmallBodies) requests for this file; it must take more, or another protocol be named"
    )
  }
}

extension Uploader {
  /// The parts of a source, from the server's limits, the body size that gets through, and the capacity of the spool.
  /// `length` nil: it is unknown. `session` nil: there is none yet.
  func plan(_ source: SpooledSource, length: Int64?, _ session: UploadSession?) -> PartPlan {
    // Part numbers belong to the plan with which the upload started.
    if let size = session?.partSize { return PartPlan(length: length, partSize: size) }
    let limits = destination.limits(of: session)
    var wanted = partSize ?? (length == nil ? nil : limits.usual)
    if let most = source.largestPart { wanted = min(wanted ?? most, most) }
    return PartPlan(length: length, wanted: wanted, limits: limits)
  }
}
