import Blobs
import Foundation

/// One pass over an `EventedSource`, with blocking reads. Its `deinit` closes the pass.
final class EventedPass {
  let source: any EventedSource
  private let cancel: Cancellation
  private let inbox = Monitor(Inbox())
  private var isOpen = false

  /// The events received so far. Events after the end or a failure are ignored, as are repeated `opened` events.
  private struct Inbox {
    var info: BlobInfo?
    var mayHaveBytes = false
    var hasEnded = false
    var failure: BlobError?

    mutating func take(_ event: SourceEvent) {
      if failure != nil || hasEnded { return }
      switch event {
      case .opened(let info):
        if self.info == nil { self.info = info }
        // Some sources have their first bytes at this point and send no further event.
        mayHaveBytes = true
      case .bytesAvailable: mayHaveBytes = true
      case .ended: hasEnded = true
      case .failed(let error): failure = blobError(error)
      }
    }
  }

  init(_ source: any EventedSource, _ cancel: Cancellation) {
    self.source = source
    self.cancel = cancel
  }

  deinit { if isOpen { source.close() } }

  func open() throws(BlobError) -> BlobInfo {
    try refuseToWaitOnMainThread("open")
    isOpen = true
    source.open { [inbox] event in inbox.update { $0.take(event) } }
    return try wait { inbox throws(BlobError) in
      if let info = inbox.info { return info }
      if let failure = inbox.failure { throw failure }
      if inbox.hasEnded { throw BlobError(.io, "open a source that tells: it ended before it was open") }
      return nil
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    while true {
      let isLast = try turn()
      let count = try readNow(into: buffer)
      if count > 0 {
        // There may be more bytes, for which no event was sent.
        inbox.update(waking: .none) { $0.mayHaveBytes = true }
        return count
      }
      if isLast { return 0 }
    }
  }

  /// Reads and discards the bytes before `offset`.
  func skip(to offset: Int64) throws(BlobError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var left = offset
    while left > 0 {
      let wanted = Int(min(left, Int64(buffer.count)))
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(wanted)))
      if count == 0 {
        throw BlobError(.outOfRange, "open a source that tells at byte \(offset): it ended at \(offset - left)")
      }
      left -= Int64(count)
    }
  }

  /// Throws the failure of the pass, if any.
  func check() throws(BlobError) { if let failure = inbox.update(waking: .none, { $0.failure }) { throw failure } }

  /// Waits until reading makes sense. Returns true if no more bytes will come than are available now.
  private func turn() throws(BlobError) -> Bool {
    let ready = { (inbox: inout Inbox) throws(BlobError) -> Bool? in
      if let failure = inbox.failure { throw failure }
      if inbox.hasEnded { return true }
      if !inbox.mayHaveBytes { return nil }
      inbox.mayHaveBytes = false
      return false
    }
    if let known = try inbox.update(waking: .none, ready) { return known }
    try refuseToWaitOnMainThread("read")
    return try wait(ready)
  }

  private func readNow(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count: Int
    do {
      count = try source.read(into: buffer)
    } catch {
      throw blobError(error)
    }
    if !(0...buffer.count ~= count) {
      throw BlobError(.io, "a source that tells says it read \(count) bytes into a buffer of \(buffer.count)")
    }
    return count
  }

  private func wait<Result>(_ ready: (inout Inbox) throws(BlobError) -> Result?) throws(BlobError) -> Result {
    try cancel.whileWaiting(wakeUp: { [inbox] in inbox.update { _ in } }) { () throws(BlobError) in
      try inbox.wait { inbox throws(BlobError) in
        try cancel.check("wait for a source that tells")
        return try ready(&inbox)
      }
    }
  }

  private func refuseToWaitOnMainThread(_ what: String) throws(BlobError) {
    if source.answersOnMainThread && isMain {
      let advice = "open the stream asynchronously, or for multipart, or on another thread"
      throw BlobError(.unsupported, "\(what) a source that answers on the main thread, there: \(advice)")
    }
  }
}

/// Whether waiting on this thread would block the main queue. On Linux, another thread than the main thread may serve
/// it.
private var isMain: Bool { Thread.isMainThread || DispatchQueue.getSpecific(key: mainMark) != nil }

private let mainMark = {
  let mark = DispatchSpecificKey<Void>()
  DispatchQueue.main.setSpecific(key: mark, value: ())
  return mark
}()

private func blobError(_ error: any Error) -> BlobError {
  (error as? BlobError) ?? BlobError(.io, "the source failed: \(error)", cause: error)
}
