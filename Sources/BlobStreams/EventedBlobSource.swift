import Blobs
import Foundation

/// A `BlobSource` of `EventedSource`s, one for each time it is opened.
///
/// What is set by a key is set on the next pass, and on every later one that takes it.
public struct EventedBlobSource: ConfigurableSource {
  public let access: BlobAccess
  private let passes: Passes

  /// `make` gives a fresh pass over the same bytes. `.sequential` where there can be only one, from the start.
  public init(access: BlobAccess = .random, _ make: @escaping @Sendable () -> any EventedSource) {
    self.access = access
    passes = Passes(make)
  }

  /// Opens a pass to hear what it knows.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try openReader(at: 0, cancel).info }

  /// `.unsupported` on the main thread, if that is where the answers come.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openReader(at: offset, cancel)
  }

  private func openReader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> EventedReader {
    try cancel.check("open a source that tells")
    if offset < 0 { throw BlobError(.outOfRange, "open a source that tells at byte \(offset)") }
    let pass = EventedPass(passes.next(), cancel)
    // Before it is opened; what is asked for first would be its first byte anyway.
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

/// The passes that are made, and what is set on them.
private final class Passes: @unchecked Sendable {
  // `lock` guards all but `make`. Values are only handed from pass to pass: they are as safe as whoever set them sees to.
  private let lock = NSLock()
  private let make: @Sendable () -> any EventedSource
  private var settings: [(key: Stream.PropertyKey, value: Any?)] = []
  /// Asked for its properties before any was opened.
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
