import BlobMedia
import BlobUpload
import Blobs
import Platform
import Synchronization

/// A photo's edit that is rendered during the upload.
struct FoundRendition: Sendable, Hashable {
  let original: BytePath
  let sidecar: BytePath
  let edit: PhotoEdit
  let renderer: Renderer
  let quality: Int

  enum Finding: Sendable {
    /// The photo has no edit.
    case none
    /// Indirect to keep the enum small, because most files have no edit.
    indirect case rendered(FoundSource)
    /// The edit cannot be rendered exactly, or not on this machine.
    case refused(String)
  }

  var source: RenditionSource {
    RenditionSource(FileSource(original), FileSource(sidecar), edit, renderer, quality: quality)
  }

  /// The rendition's identity in the journal.
  var identity: BytePath { BytePath(Array("\(Self.mark)\(quality):".utf8) + original.bytes) }
  private static let mark = "rendition:"

  /// Parses an identity from the journal; nil if it is not that of a rendition.
  static func kept(_ identity: BytePath) -> (quality: Int, original: BytePath)? {
    let mark = Array(mark.utf8)
    guard identity.bytes.starts(with: mark) else { return nil }
    let rest = identity.bytes.dropFirst(mark.count)
    guard let colon = rest.firstIndex(of: UInt8(ascii: ":")),
      let quality = Int(String(decoding: rest[..<colon], as: UTF8.self)), (1...100).contains(quality)
    else { return nil }
    return (quality, BytePath(rest[(colon + 1)...]))
  }
}

extension FoundRendition.Finding {
  /// The current state of a rendition from the journal. This call blocks.
  init(kept intent: JournalIntent, _ renderer: RendererLocator) {
    guard let (quality, original) = FoundRendition.kept(intent.source) else {
      self = .none
      return
    }
    var status = stat()
    guard original.status(&status) == 0 else {
      self = .refused("\(original) is not there any more")
      return
    }
    let item = TreeItem(path: original, relative: intent.path, stamp: FileStamp(status, at: original))
    let found = Self.find(item, as: intent.path, quality, renderer)
    if case .none = found { self = .refused("\(original) has no edit any more") } else { self = found }
  }

  /// Reads the sidecars of a photo, and asks the renderer whether it can render the edit. This call blocks.
  static func find(_ item: TreeItem, as arrival: BytePath, _ quality: Int, _ renderer: RendererLocator) -> Self {
    switch SidecarReader(item.path).sidecar {
    case .nothing: return .none
    case .refused(let reason): return .refused(reason.description)
    case .edit(let edit, let sidecar):
      if GalleryName(item.path.name).kind == .raw {
        return .refused("a RAW file is developed, which nobody does alike")
      }
      do throws(BlobError) {
        let program = try renderer.get()
        if let refusal = try program.refusal(of: edit, on: FileSource(item.path)) {
          return .refused(refusal.description)
        }
        let rendition = FoundRendition(
          original: item.path, sidecar: sidecar, edit: edit, renderer: program, quality: quality)
        return .rendered(FoundSource(.rendition(rendition), rendition.identity, as: arrival))
      } catch {
        return .refused(error.message)
      }
    }
  }
}

/// The edit in a photo's sidecars. Its methods block.
private struct SidecarReader {
  enum Answer {
    case nothing
    case edit(PhotoEdit, BytePath)
    case refused(RenditionRefusal)
  }
  let sidecar: Answer

  init(_ path: BytePath) {
    let name = GalleryName(path.name)
    let folder = path.folder
    let ending = String(decoding: name.name.bytes.split(separator: UInt8(ascii: ".")).last ?? [], as: UTF8.self)
    var edits: [(PhotoEdit, BytePath)] = []
    for file in Gallery().sidecars(of: name, { isFile(folder.appending($0)) }) {
      let place = folder.appending(file)
      switch readWhole(place).map({ Sidecar($0, besidePhoto: ending) }) {
      case .edit(let edit):
        if edit.changes(path) { edits.append((edit, place)) }
      case .refused(let reason):
        sidecar = .refused(RenditionRefusal("\(file): \(reason)"))
        return
      case .nothing: break
      case nil:
        sidecar = .refused(RenditionRefusal("\(file) cannot be read"))
        return
      }
    }
    if !edits.isEmpty, name.kind == .photo, let twin = Gallery().twin(of: name, { isFile(folder.appending($0)) }) {
      sidecar = .refused(RenditionRefusal("it may be that of \(twin)"))
    } else if edits.count > 1 {
      sidecar = .refused(RenditionRefusal("\(edits[0].1.name) and \(edits[1].1.name) say different things"))
    } else {
      sidecar = edits.first.map { .edit($0.0, $0.1) } ?? .nothing
    }
  }
}

extension PhotoEdit {
  /// False if the edit only repeats the photo's orientation, as many sidecars do.
  fileprivate func changes(_ photo: BytePath) -> Bool {
    frame != .whole || orientation != PhotoOrientation.read(from: FileSource(photo))
  }
}

/// nil if the file is too large or cannot be read.
private func readWhole(_ path: BytePath) -> [UInt8]? {
  let source = FileSource(path)
  // The reason does not matter: an unreadable sidecar is refused.
  guard let reader = try? source.open(at: 0, Cancellation()), let length = reader.info.length, length <= Sidecar.most
  else { return nil }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 64 << 10)
  while true {
    guard let count = chunk.withUnsafeMutableBytes({ try? reader.read(into: $0) }) else { return nil }
    if count == 0 { return bytes }
    bytes += chunk.prefix(count)
  }
}

/// Finds the helper program at the first edit.
final class RendererLocator: Sendable {
  private let found = Mutex<Result<Renderer, BlobError>?>(nil)

  /// This call blocks.
  func get() throws(BlobError) -> Renderer {
    try found.withLock { found -> Result<Renderer, BlobError> in
      if let found { return found }
      let result = Result { () throws(BlobError) in try Self.find() }
      found = result
      return result
    }.get()
  }

  private static func find() throws(BlobError) -> Renderer {
    #if os(Linux)
      let own = OwnProgram.path
      let folder = own.folder
      guard let program = Renderer.path(besides: folder) else {
        throw BlobError(.notFound, "fullbore-media, which renders edits, is neither beside fullbore nor in PATH")
      }
      return try Renderer(program)
    #else
      throw BlobError(.notFound, "edits are rendered on Linux only, where the kernel confines the decoders")
    #endif
  }
}

extension PushOptions {
  /// How the edit of a file is sent. This call blocks.
  func edit(of item: TreeItem) -> FoundRendition.Finding {
    guard let name = editable(item) else { return .none }
    let relative = BytePath(item.relative.folder.bytes + Gallery().renditionName(of: name).bytes)
    let found = FoundRendition.Finding.find(
      item, as: place(item, named: relative, beside: item.path), editQuality, renderer)
    guard case .rendered(let rendition) = found, !also.isEmpty else { return found }
    let others = also.map { $0.place(item, named: relative, beside: item.path) }
    return .rendered(FoundSource(rendition.place, rendition.identity, rendition.name, others: others))
  }

  /// Whether a sidecar contains an edit of the file. This call blocks.
  func hasEdit(_ item: TreeItem) -> Bool {
    guard editable(item) != nil else { return false }
    if case .nothing = SidecarReader(item.path).sidecar { return false }
    return true
  }

  /// The name of a photo that may have an edit without a rendered file; nil otherwise.
  private func editable(_ item: TreeItem) -> GalleryName? {
    guard edits == .current || edits == .both else { return nil }
    let name = GalleryName(item.path.name)
    guard !name.isRendered, name.kind == .photo || name.kind == .raw else { return nil }
    let folder = item.path.folder
    guard edited.hasNotes(name.stem, in: folder), !edited.contains(name.stem, in: folder) else { return nil }
    return name
  }
}

extension FoundRendition {
  /// The rendition as a source, and its info. With `needsLength` it is rendered once to measure its length.
  func open(needsLength: Bool) async -> Result<(any BlobSource, BlobInfo), BlobError> {
    await rendering.runUntilCancelled { cancel in
      Result { () throws(BlobError) in
        let source = needsLength ? try source.measured(cancel) : source
        return (source, try source.info(cancel))
      }
    } ?? .failure(BlobError(.cancelled, "render \(original): cancelled"))
  }
}

private let rendering = BlockingPool("render", threads: 4, patience: .seconds(5))
