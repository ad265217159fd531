import Blobs
import Synchronization

/// A photo as its owner sees it: the original with its edit, rendered to JPEG while it is read, and nowhere kept.
///
/// The same original, sidecar, renderer and quality give the same bytes; together they are its version. It is read from
/// start to end by one reader at a time; the next one may go on where that stopped, or begin anywhere else, which costs
/// rendering all that is before. Only the end tells the length.
public struct RenditionSource: BlobSource {
  public let original: any BlobSource
  /// Where the edit is written down: it must still be that when the bytes are read.
  public let sidecar: any BlobSource
  /// What the edit is, as it was read from there.
  public let edit: PhotoEdit
  public let renderer: Renderer
  /// Of JPEG, 1 to 100.
  public let quality: Int
  private let length: Int64?
  private let work: RenderWork
  public var access: BlobAccess { .sequential }

  /// `length` in bytes, where a rendering before has told it: another one is `.truncated` or `.changed`.
  public init(
    _ original: any BlobSource, _ sidecar: any BlobSource, _ edit: PhotoEdit, _ renderer: Renderer, quality: Int = 93,
    length: Int64? = nil
  ) {
    precondition((1...100).contains(quality))
    self.original = original
    self.sidecar = sidecar
    self.edit = edit
    self.renderer = renderer
    self.quality = quality
    self.length = length
    work = RenderWork()
  }

  /// Asks original and sidecar; nothing is rendered.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try look(cancel) }

  /// Throws `.unsupported` while another reader is at work, `.outOfRange` past the end, and `.io` for a picture that
  /// cannot be rendered.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let info = try look(cancel)
    try work.begin()
    let run: RenderRun
    do throws(BlobError) {
      if let waiting = work.take(at: offset, info) { run = waiting } else { run = try start(info, cancel) }
    } catch {
      work.end(nil)
      throw error
    }
    let reader = RenditionReader(self, run, cancel)
    try reader.skip(to: offset)
    return reader
  }

  /// Bytes of it all, by rendering it once. Blocks for as long as that takes.
  public func measured(_ cancel: Cancellation) throws(BlobError) -> RenditionSource {
    let reader = try open(at: 0, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var length: Int64 = 0
    while case let count = try reader.read(into: buffer), count > 0 { length += Int64(count) }
    return RenditionSource(original, sidecar, edit, renderer, quality: quality, length: length)
  }

  private func start(_ info: BlobInfo, _ cancel: Cancellation) throws(BlobError) -> RenderRun {
    let reader = try original.open(at: 0, cancel)
    let process = try renderer.start(["render", "--quality=\(quality)"] + edit.arguments, reader)
    return RenderRun(process: process, info: info)
  }

  fileprivate func look(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let photo = try original.info(cancel)
    let notes = try sidecar.info(cancel)
    guard let version = photo.validator?.version, let noted = notes.validator?.version else {
      return BlobInfo(length: length)
    }
    let parts = [version, noted, renderer.version, "\(quality)"] + edit.arguments
    let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
    let name = "rendition-\(SHA256.hex(of: Array(text.utf8)))"
    return BlobInfo(
      length: length, validator: Validator(version: name, instance: photo.validator?.instance ?? ""),
      instanceLasts: photo.instanceLasts)
  }

  fileprivate func ended(_ run: RenderRun?) { work.end(run) }
}

/// A rendering under way, and how far it was read.
private struct RenderRun: Sendable {
  let process: RenderProcess
  /// As it was when it began.
  let info: BlobInfo
  var offset: Int64 = 0
  var isOver = false
}

/// What is between two readers: a rendering that waits to be read on.
private final class RenderWork: Sendable {
  private struct State {
    var isRead = false
    var run: RenderRun?
  }
  private let state = Mutex(State())

  func begin() throws(BlobError) {
    let isFree = state.withLock { state in
      defer { state.isRead = true }
      return !state.isRead
    }
    if !isFree { throw BlobError(.unsupported, "open a rendition: another reader is at it") }
  }

  /// What can go on from `offset`; what cannot is ended.
  func take(at offset: Int64, _ info: BlobInfo) -> RenderRun? {
    let run = state.withLock { $0.run.take() }
    return run?.info == info && run?.offset == offset ? run : nil
  }

  func end(_ run: RenderRun?) {
    state.withLock { state in
      state.run = run
      state.isRead = false
    }
  }
}

private final class RenditionReader: BlobReader {
  let info: BlobInfo
  private let source: RenditionSource
  private let cancel: Cancellation
  /// nil once it has failed.
  private var run: RenderRun?

  init(_ source: RenditionSource, _ run: RenderRun, _ cancel: Cancellation) {
    self.source = source
    self.run = run
    self.cancel = cancel
    info = run.info
  }

  deinit { source.ended(run) }

  func skip(to offset: Int64) throws(BlobError) {
    let here = run?.offset ?? 0
    if here == offset { return }
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { scratch.deallocate() }
    var left = offset - here
    while left > 0 {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: scratch.prefix(Int(clamping: left))))
      if count == 0 {
        throw BlobError(.outOfRange, "open a rendition at byte \(offset): it has \(offset - left)")
      }
      left -= Int64(count)
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    try cancel.check("read a rendition")
    guard var run = self.run else { throw BlobError(.io, "read a rendition: it has failed before") }
    if run.isOver { return 0 }
    // Whatever is thrown: it cannot be read on.
    self.run = nil
    let process = run.process
    let count = try cancel.whileWaiting(wakeUp: { process.kill() }) { () throws(BlobError) in
      try process.read(into: buffer, patience: source.renderer.patience)
    }
    try cancel.check("read a rendition")
    if let length = info.length, run.offset + Int64(count) > length {
      throw BlobError(.changed, "the rendition goes on after its \(length) bytes")
    }
    run.offset += Int64(count)
    if count == 0 {
      try end(run)
      run.isOver = true
    }
    self.run = run
    return count
  }

  /// What came is a whole picture, and of the original that it was begun with.
  private func end(_ run: RenderRun) throws(BlobError) {
    let process = run.process
    let failure = cancel.whileWaiting(wakeUp: { process.kill() }) {
      process.wait(patience: source.renderer.patience)
    }
    try cancel.check("read a rendition")
    if let failure {
      try unchanged()
      throw BlobError(.io, "render the edit after byte \(run.offset): \(failure.text)")
    }
    if let length = info.length, run.offset < length {
      throw BlobError(.truncated, "the rendition ended at byte \(run.offset) of \(length)")
    }
    try unchanged()
  }

  private func unchanged() throws(BlobError) {
    let now: BlobInfo
    do throws(BlobError) { now = try source.look(cancel) } catch {
      if error.code == .cancelled { throw error }
      throw BlobError(.changed, "the original or its sidecar went away while it was rendered", cause: error)
    }
    if now != info { throw BlobError(.changed, "the original or its sidecar changed while it was rendered") }
  }

  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    if run != nil { try unchanged() }
  }
}
