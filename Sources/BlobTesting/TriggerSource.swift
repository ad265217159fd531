import Blobs
import Synchronization

/// A source that calls `action` once, when the byte at an offset is about to be read for the first time.
///
/// `action` runs on the reader's thread, which may block, so that a check can inspect the server in the middle of a
/// body.
package struct TriggerSource: BlobSource {
  private let source: any BlobSource
  private let trigger: Trigger

  package init(_ source: any BlobSource, at byte: Int64, _ action: @escaping @Sendable () -> Void) {
    self.source = source
    trigger = Trigger(byte, action)
  }

  package var access: BlobAccess { source.access }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    TriggerReader(try source.open(at: offset, cancel), at: offset, trigger)
  }
}

private final class Trigger: Sendable {
  let byte: Int64
  private let action: @Sendable () -> Void
  private let isPulled = Atomic(false)

  init(_ byte: Int64, _ action: @escaping @Sendable () -> Void) {
    self.byte = byte
    self.action = action
  }

  func pull() { if !isPulled.exchange(true, ordering: .relaxed) { action() } }
}

private final class TriggerReader: BlobReader {
  private let reader: any BlobReader
  private let trigger: Trigger
  private var offset: Int64

  init(_ reader: any BlobReader, at offset: Int64, _ trigger: Trigger) {
    self.reader = reader
    self.offset = offset
    self.trigger = trigger
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if offset == trigger.byte { trigger.pull() }
    let wanted = offset < trigger.byte ? Int(min(Int64(buffer.count), trigger.byte - offset)) : buffer.count
    let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(wanted)))
    offset += Int64(count)
    return count
  }

  // Sending from a file region would bypass `read`, and so the trigger.
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
