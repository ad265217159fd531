extension UploadDestination {
  /// Parts of all files that go at once, so that many large files do not take a hundred connections.
  static let mostParts = 16

  /// No body is made smaller than this: whoever takes no more takes no files.
  static let smallestBody: Int64 = 64 << 10

  /// So many requests for one file are the most, where a server takes less than `smallestBody` in each.
  static let mostSmallBodies: Int64 = 10_000

  /// What the server has told, as far as it gets through to it: a proxy on the way may take less.
  var currentLimits: PartLimits {
    var limits = limits
    let most = acquaintance.largestBody.load(ordering: .relaxed)
    if most == .max { return limits }
    limits.largest = min(limits.largest ?? most, most)
    // Where all goes in one request there is nothing to cut.
    if limits.firstPart != .max { limits.firstPart = min(limits.firstPart, most) }
    return limits
  }

  /// What an earlier run has found to get through.
  func expect(largestBody: Int64) { acquaintance.largestBody.min(max(1, largestBody), ordering: .relaxed) }

  /// A body of `size` bytes was refused. Returns how many may be sent from now on, to this host, by every upload; nil:
  /// it is not the size, or it cannot be smaller. `most` is what the server says that it takes.
  ///
  /// Powers of 4: the limits that people set are found in few steps, and none is undercut by more than three quarters.
  func shrink(below size: Int64, to most: Int64?) -> Int64? {
    // A request without a body cannot have been too large.
    if size <= 0 { return nil }
    let known = acquaintance.largestBody.load(ordering: .relaxed)
    // Another upload was refused before, and this body was on its way already.
    if known < size { return known }
    var next = Self.smallestBody << 10
    while next >= size { next >>= 2 }
    if let most, most > 0, most < size, size / most <= Self.mostSmallBodies { next = most }
    if next < Self.smallestBody && next != most { return nil }
    expect(largestBody: next)
    return next
  }
}
