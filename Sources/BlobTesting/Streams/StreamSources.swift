import BlobStreams
import Blobs
import Foundation
import Synchronization

/// A source that counts its open readers.
package struct TrackedSource: BlobSource {
  private let source: any BlobSource
  private let count = Count()

  private final class Count: Sendable { let readers = Atomic(0) }

  private final class Reader: BlobReader {
    let reader: any BlobReader
    let count: Count
    init(_ reader: any BlobReader, _ count: Count) {
      self.reader = reader
      self.count = count
      count.readers.add(1, ordering: .relaxed)
    }
    deinit { count.readers.subtract(1, ordering: .relaxed) }
    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { reader.fileRegion() }
    func finish() throws(BlobError) { try reader.finish() }
  }

  package init(_ source: any BlobSource) { self.source = source }

  package var readers: Int { count.readers.load(ordering: .relaxed) }
  package var access: BlobAccess { source.access }
  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try source.open(at: offset, cancel), count)
  }
}

/// A source with another `preferredRead`.
struct PreferringSource: BlobSource {
  let source: any BlobSource
  var preferredRead = 1

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { changed(try source.info(cancel)) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try source.open(at: offset, cancel)
    return WrappedReader(reader, info: changed(reader.info)) { buffer throws(BlobError) in
      try reader.read(into: buffer)
    }
  }

  private func changed(_ info: BlobInfo) -> BlobInfo {
    var info = info
    info.preferredRead = preferredRead
    return info
  }
}

/// A source whose reads return the count `claim`, whatever was read.
struct OvercountingSource: BlobSource {
  let source: any BlobSource
  let claim: Int

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let claim = claim
    return WrappedReader(try source.open(at: offset, cancel)) { _ in claim }
  }
}

/// A source with a property that can be set.
struct SettableSource: ConfigurableSource {
  private let source: any BlobSource
  private let key: Stream.PropertyKey
  private let value = Monitor(0)

  init(_ source: any BlobSource, key: Stream.PropertyKey) {
    self.source = source
    self.key = key
  }

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try source.open(at: offset, cancel)
  }

  func property(forKey key: Stream.PropertyKey) -> Any? {
    key == self.key ? NSNumber(value: value.update { $0 }) : nil
  }

  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool {
    guard key == self.key, let number = value as? NSNumber else { return false }
    let new = number.intValue
    self.value.update { $0 = new }
    return true
  }
}

/// A reader whose reads are performed by a closure.
private final class WrappedReader: BlobReader {
  let info: BlobInfo
  private let reader: any BlobReader
  private let body: (UnsafeMutableRawBufferPointer) throws(BlobError) -> Int

  init(
    _ reader: any BlobReader, info: BlobInfo? = nil,
    _ body: @escaping (UnsafeMutableRawBufferPointer) throws(BlobError) -> Int
  ) {
    self.reader = reader
    self.info = info ?? reader.info
    self.body = body
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try body(buffer) }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
