import Blobs
import Foundation

/// A `BlobSource` that creates one `EventedSource` for each time it is opened.
///
/// A property set by a key is applied to the current pass and to every later pass that accepts it.
public struct EventedBlobSource: ConfigurableSource {
  public let access: BlobAccess
  private let passes: Passes

  /// `make` creates a new pass over the same bytes. Use `.sequential` if only one pass is possible, from the start.
  public init(access: BlobAccess = .random, _ make: @escaping @Sendable () -> any EventedSource) {
    self.access = access
    passes = Passes(make)
  }

  /// Opens a pass to get its information.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try openReader(at: 0, cancel).info }

  /// Throws `.unsupported` on the main thread if the source delivers its events there.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openReader(at: offset, cancel)
  }

  private func openReader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> EventedReader {
    try cancel.check("open a source that tells")
    if offset < 0 { throw BlobError(.outOfRange, "open a source that tells at byte \(offset)") }
    let pass = EventedPass(passes.next(), cancel)
    // The offset is set before opening; otherwise the pass would fetch its first bytes for nothing.
    let skips = offset > 0 && !pass.source.setProperty(offset, forKey: .fileCurrentOffsetKey)
    let info = try pass.open()
    if let length = info.length, offset > length {
      throw BlobError(.outOfRange, "open a source that tells at byte \(offset): it has \(length)")
    }
    if skips { try pass.skip(to: offset) }
    return EventedReader(pass, info)
  }

  public func property(forKey key: Stream.PropertyKey) -> Any? { passes.property(forKey: key) }

  public func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool {
    key != .fileCurrentOffsetKey && passes.setProperty(value, forKey: key)
  }
}

private final class EventedReader: BlobReader {
  let info: BlobInfo
  private let pass: EventedPass

  init(_ pass: EventedPass, _ info: BlobInfo) {
    self.pass = pass
    self.info = info
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try pass.read(into: buffer) }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try pass.check() }
}

/// Creates the passes and remembers the properties set on them.
private final class Passes: @unchecked Sendable {
  // `lock` guards everything but `make`. Values are only passed from one pass to the next; their thread safety is the
  // responsibility of the code that set them.
  private let lock = NSLock()
  private let make: @Sendable () -> any EventedSource
  private var settings: [(key: Stream.PropertyKey, value: Any?)] = []
  /// A pass that was created to access its properties before any pass was opened.
  private var prepared: (any EventedSource)?
  private weak var latest: (any EventedSource)?

  init(_ make: @escaping @Sendable () -> any EventedSource) { self.make = make }

  func next() -> any EventedSource {
    let prepared = lock.withLock {
      defer { self.prepared = nil }
      return self.prepared
    }
    let pass = prepared ?? fresh()
    lock.withLock { latest = pass }
    return pass
  }

  func property(forKey key: Stream.PropertyKey) -> Any? { current().property(forKey: key) }

  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool {
    guard current().setProperty(value, forKey: key) else { return false }
    lock.withLock {
      settings.removeAll { $0.key == key }
      settings.append((key, value))
    }
    return true
  }

  private func current() -> any EventedSource {
    if let pass = lock.withLock({ latest ?? prepared }) { return pass }
    let pass = fresh()
    lock.withLock { prepared = pass }
    return pass
  }

  private func fresh() -> any EventedSource {
    let pass = make()
    for (key, value) in lock.withLock({ settings }) { _ = pass.setProperty(value, forKey: key) }
    return pass
  }
}
