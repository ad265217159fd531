import BlobStreams
import Blobs
import Foundation

/// An evented source that responds from another thread, in small pieces, and misbehaves on request.
final class ScriptedPass: EventedSource, @unchecked Sendable {
  enum Misdeed {
    case throwing(any Error)
    case claiming(Int)
    case losing(at: Int)
  }
  static let rendition = Stream.PropertyKey("rendition")

  let answersOnMainThread: Bool
  // These are set before it is opened.
  var tellsTwice = false
  var misdeed: Misdeed?

  // `lock` guards the rest.
  private let lock = NSLock()
  private let bytes: [UInt8]
  private let info: BlobInfo
  private let opening: [SourceEvent]?
  private let canSeek: Bool
  private var offset = 0
  /// Bytes that may be read now.
  private var ready = 0
  private var handler: (@Sendable (SourceEvent) -> Void)?
  private var setting: String?
  private var closed = false
  private var lateReads = 0

  /// `opening`: the events when it is opened, with none afterwards; nil: all regular events.
  init(
    _ bytes: [UInt8], opening: [SourceEvent]? = nil, knowsLength: Bool = true, canSeek: Bool = true,
    answersOnMainThread: Bool = false
  ) {
    self.bytes = bytes
    self.opening = opening
    self.canSeek = canSeek
    self.answersOnMainThread = answersOnMainThread
    info = BlobInfo(
      length: knowsLength ? Int64(bytes.count) : nil, validator: Validator(version: "scripted \(bytes.count)"))
  }

  var isClosed: Bool { lock.withLock { closed } }
  var readsAfterClose: Int { lock.withLock { lateReads } }

  func open(_ tell: @escaping @Sendable (SourceEvent) -> Void) {
    lock.withLock { handler = tell }
    if let opening { return elsewhere { for event in opening { $0.tell(event) } } }
    elsewhere { pass in
      pass.tell(.opened(pass.info))
      pass.advance()
    }
  }

  /// Makes more bytes ready, and signals that.
  private func advance() {
    let isAll = lock.withLock {
      ready = min(bytes.count, max(ready, offset) + 4000)
      return ready == bytes.count
    }
    tell(.bytesAvailable)
    if isAll { tell(.ended) }
  }

  func tell(_ event: SourceEvent) {
    let handler = lock.withLock { self.handler }
    for _ in 0..<(tellsTwice ? 2 : 1) { handler?(event) }
  }

  private func elsewhere(_ work: @escaping @Sendable (ScriptedPass) -> Void) {
    SystemThread.start("scripted") { [weak self] in if let self { work(self) } }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    switch misdeed {
    case .throwing(let error): throw error
    case .claiming(let count): return count
    case .losing(let place):
      if lock.withLock({ offset >= place }) { throw BlobError(.invalidated, "lost at \(place)") }
    case nil: break
    }
    let count = lock.withLock {
      if closed { lateReads += 1 }
      let count = min(buffer.count, max(0, ready - offset))
      bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
    if count == 0 && lock.withLock({ ready < bytes.count }) { elsewhere { $0.advance() } }
    return count
  }

  func close() { lock.withLock { closed = true } }

  func property(forKey key: Stream.PropertyKey) -> Any? {
    key == Self.rendition ? lock.withLock { setting.map { NSString(string: $0) } } : nil
  }

  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool {
    if key == .fileCurrentOffsetKey, canSeek, let place = value as? Int64 {
      lock.withLock { offset = Int(min(place, Int64(bytes.count))) }
      return true
    }
    guard key == Self.rendition, let text = value as? String else { return false }
    lock.withLock { setting = text }
    return true
  }
}
