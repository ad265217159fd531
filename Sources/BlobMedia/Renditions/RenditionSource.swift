import Blobs
import Synchronization

/// The edited version of a photo: the original with its edit, rendered to JPEG during reading and not stored.
///
/// The same original, sidecar, renderer and quality give the same bytes; together they form the version. The source
/// allows one reader at a time, which reads sequentially. The next reader may continue where the last one stopped.
/// Opening at any other offset renders everything before it again. The length is known only at the end.
public struct RenditionSource: BlobSource {
  /// The photo without the edit.
  public let original: any BlobSource
  /// The file that contains the edit; reading fails if it changes before the bytes are read.
  public let sidecar: any BlobSource
  /// The edit that was read from `sidecar`.
  public let edit: PhotoEdit
  /// The program that renders the edit.
  public let renderer: Renderer
  /// JPEG quality, 1 to 100.
  public let quality: Int
  private let length: Int64?
  private let work: PausedRendering
  public var access: BlobAccess { .sequential }

  /// Creates a source without reading or rendering anything.
  /// - `length`: bytes, if an earlier rendering has measured it. Another length is `.truncated` or `.changed`.
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
    work = PausedRendering()
  }

  /// Calls `info` of original and sidecar. Renders nothing.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try look(cancel) }

  /// Throws `.unsupported` while another reader is open, `.outOfRange` for an offset past the end, and `.io` if the
  /// picture cannot be rendered.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let info = try look(cancel)
    try work.begin()
    let run: ActiveRendering
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

  /// A copy with known length, which is measured by rendering the picture once. This call blocks.
  public func measured(_ cancel: Cancellation) throws(BlobError) -> RenditionSource {
    let reader = try open(at: 0, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var length: Int64 = 0
    while case let count = try reader.read(into: buffer), count > 0 { length += Int64(count) }
    return RenditionSource(original, sidecar, edit, renderer, quality: quality, length: length)
  }

  private func start(_ info: BlobInfo, _ cancel: Cancellation) throws(BlobError) -> ActiveRendering {
    let reader = try original.open(at: 0, cancel)
    let process = try renderer.start(["render", "--quality=\(quality)"] + edit.arguments, reader)
    return ActiveRendering(process: process, info: info)
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

  fileprivate func ended(_ run: ActiveRendering?) { work.end(run) }
}

/// A rendering in progress and the offset up to which it was read.
private struct ActiveRendering: Sendable {
  let process: RenderProcess
  /// The source's info at the start of the rendering.
  let info: BlobInfo
  var offset: Int64 = 0
  var isOver = false
}

/// Stores the unfinished rendering between two readers.
private final class PausedRendering: Sendable {
  private struct State {
    var isRead = false
    var run: ActiveRendering?
  }
  private let state = Mutex(State())

  func begin() throws(BlobError) {
    let isFree = state.withLock { state in
      defer { state.isRead = true }
      return !state.isRead
    }
    if !isFree { throw BlobError(.unsupported, "open a rendition: another reader is at it") }
  }

  /// The stored rendering if it can continue from `offset`; otherwise the stored rendering is ended.
  func take(at offset: Int64, _ info: BlobInfo) -> ActiveRendering? {
    let run = state.withLock { $0.run.take() }
    return run?.info == info && run?.offset == offset ? run : nil
  }

  func end(_ run: ActiveRendering?) {
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
  /// nil after an error.
  private var run: ActiveRendering?

  init(_ source: RenditionSource, _ run: ActiveRendering, _ cancel: Cancellation) {
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
    // After any error the rendering cannot be continued.
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

  /// Checks that the rendering is complete and that the original has not changed since its start.
  private func end(_ run: ActiveRendering) throws(BlobError) {
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
