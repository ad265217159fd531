import BlobMedia
import BlobUpload
import Blobs
import Platform
import Synchronization

/// An edit that is rendered while it is sent.
struct FoundRendition: Sendable, Hashable {
  let original: BytePath
  let sidecar: BytePath
  let edit: PhotoEdit
  let renderer: Renderer
  let quality: Int

  enum Finding: Sendable {
    /// Nothing was done to it.
    case none
    /// Indirect, since most files have none: what is copied for each file stays small.
    indirect case rendered(FoundSource)
    /// Not exactly, or not here.
    case refused(String)
  }

  var source: RenditionSource {
    RenditionSource(FileSource(original), FileSource(sidecar), edit, renderer, quality: quality)
  }

  /// Who it is in the journal.
  var identity: BytePath { BytePath(Array("\(Self.mark)\(quality):".utf8) + original.bytes) }
  private static let mark = "rendition:"

  /// As the journal has it: quality and original; nil for what is none.
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
  /// What the journal knows, as it is now. Blocks.
  init(kept intent: JournalIntent, _ renderer: FoundRenderer) {
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

  /// Reads what lies beside a photo, and asks the renderer whether it can do that. Blocks.
  static func find(_ item: TreeItem, as arrival: BytePath, _ quality: Int, _ renderer: FoundRenderer) -> Self {
    switch SidecarLook(item.path).sidecar {
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

/// What the files beside a photo say of its frame. Blocks.
private struct SidecarLook {
  enum Answer {
    case nothing
    case edit(PhotoEdit, BytePath)
    case refused(RenditionRefusal)
  }
  let sidecar: Answer

  init(_ path: BytePath) {
    let name = GalleryName(path.name)
    let folder = BytePath(path.bytes.dropLast(name.name.bytes.count))
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
  /// Many sidecars only repeat how the photo is to be held.
  fileprivate func changes(_ photo: BytePath) -> Bool {
    frame != .whole || orientation != PhotoOrientation.read(from: FileSource(photo))
  }
}

/// nil: it is too large, or cannot be read.
private func readWhole(_ path: BytePath) -> [UInt8]? {
  let source = FileSource(path)
  // Why does not matter: what cannot be read is not followed.
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

/// The helper program, looked for when the first edit wants it.
final class FoundRenderer: Sendable {
  private let found = Mutex<Result<Renderer, BlobError>?>(nil)

  /// Blocks.
  func get() throws(BlobError) -> Renderer {
    try found.withLock { found -> Result<Renderer, BlobError> in
      if let found { return found }
      let result = Result { () throws(BlobError) in try Self.find() }
      found = result
      return result
    }.get()
  }

  private static func find() throws(BlobError) -> Renderer {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    let own = BytePath(buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) })
    let folder = BytePath(own.bytes.dropLast(own.name.bytes.count))
    guard let program = Renderer.path(besides: folder) else {
      throw BlobError(.notFound, "fullbore-media, which renders edits, is neither beside fullbore nor in PATH")
    }
    return try Renderer(program)
  }
}

extension PushOptions {
  /// What becomes of the edit of a file that is sent. Blocks.
  func edit(of item: TreeItem) -> FoundRendition.Finding {
    guard let name = editable(item) else { return .none }
    let folder = item.relative.bytes.dropLast(item.relative.name.bytes.count)
    let relative = BytePath(folder + Gallery().renditionName(of: name).bytes)
    return .find(item, as: place(item, named: relative, beside: item.path), editQuality, renderer)
  }

  /// Whether a sidecar says that it was edited. Blocks.
  func hasEdit(_ item: TreeItem) -> Bool {
    guard editable(item) != nil else { return false }
    if case .nothing = SidecarLook(item.path).sidecar { return false }
    return true
  }

  /// A photo that may have an edit which nobody has rendered yet.
  private func editable(_ item: TreeItem) -> GalleryName? {
    guard edits == .current || edits == .both else { return nil }
    let name = GalleryName(item.path.name)
    guard !name.isRendered, name.kind == .photo || name.kind == .raw else { return nil }
    let folder = BytePath(item.path.bytes.dropLast(name.name.bytes.count))
    guard edited.hasNotes(name.stem, in: folder), !edited.contains(name.stem, in: folder) else { return nil }
    return name
  }
}

extension FoundRendition {
  /// The rendition as a source, and what is known of it. Where lengths are wanted it is rendered once to know its own.
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
