import Blobs

/// How a source of unknown length is divided into numbered parts.
public struct PipePlan: Sendable, Hashable {
  /// Size in bytes of each part except the last one. A part is held until it has arrived.
  public let partSize: Int64
  /// Maximum number of parts; nil: no limit.
  public let parts: Int?
  /// Maximum length of the source in bytes; nil: no limit.
  public let most: Int64?

  /// The part size if parts are held in a folder and no other size is requested.
  private static let inFolder: Int64 = 512 << 20

  /// nil: every part size that the server accepts is too large for the spool.
  init?(_ limits: PartLimits, wanted: Int64?, _ spool: SpoolOptions) {
    let memory = Int64(spool.memory)
    var size = spool.folder == nil ? min(wanted ?? memory, memory) : wanted ?? max(memory, Self.inFolder)
    size = max(size, limits.smallest)
    if let largest = limits.largest { size = min(size, largest) }
    if size < limits.smallest || spool.folder == nil && size > memory { return nil }
    partSize = size
    parts = limits.count
    let counted = limits.count.map { Int64($0).multipliedReportingOverflow(by: size) }
    most = [counted.map { $0.overflow ? .max : $0.partialValue }, limits.total].compactMap(\.self).min()
  }

  /// Throws if the plan has no part of this number, or if the source is too long with the part that ends at `end`.
  func check(_ number: Int, endingAt end: Int64) throws(UploadError) {
    if number <= parts ?? .max, end <= most ?? .max { return }
    throw UploadError(
      .giveUp, .file,
      "there is more of it than \(most ?? Int64(number - 1) * partSize) bytes, which is what the server takes in "
        + "\(parts.map { "\($0) " } ?? "")parts of \(partSize): --spool-memory makes them larger, or "
        + "--spool-dir, where they are held on disk")
  }
}

extension Uploader {
  /// How a sequential source of unknown length is sent. nil if its length has no limit, or if the source must be held
  /// completely.
  public var pipePlan: PipePlan? {
    guard destination.traits.numbersParts else { return nil }
    return PipePlan(destination.currentLimits, wanted: partSize, spool.forNumberedParts)
  }
}
