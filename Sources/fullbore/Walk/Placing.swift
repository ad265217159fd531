import BlobMedia
import Blobs
import Platform
import Synchronization

/// What a protocol that carries metadata is told of the files of a camera roll.
struct GalleryTelling: Sendable {
  /// Which versions of edited photos are sent. nil: all files go, and only those of a camera roll are described.
  let edits: GalleryEdits?

  /// Empty where nothing is known. Looks for the names beside it, and reads its beginning: blocks.
  func metadata(of path: BytePath) -> [String: String] {
    guard edits != nil || path.contains(component: "DCIM") else { return [:] }
    let name = GalleryName(path.name)
    if name.kind == .other { return [:] }
    let folder = BytePath(path.bytes.dropLast(name.name.bytes.count))
    let isThere = { (name: BytePath) in isFile(folder.appending(name)) }
    let gallery = Gallery(edits ?? .both)
    var facts = gallery.facts(of: name, isThere)
    facts.captured = CaptureDate(ofLeader: folder.appending(gallery.leader(of: name, isThere)))
    return facts.metadata
  }
}

/// Where a file goes.
enum Placing: Sendable, Hashable {
  /// Below the destination.
  case at(BytePath)
  case leftOut(reason: String)
}

extension PushOptions {
  /// Where a file goes, and whether it does. Looks for the names beside it, and reads its beginning where the layout
  /// wants its date: blocks.
  func placing(of item: TreeItem) -> Placing {
    if layout == nil && edits == nil { return .at(arrival(of: item.relative)) }
    let name = GalleryName(item.path.name)
    let folder = BytePath(item.path.bytes.dropLast(name.name.bytes.count))
    let gallery = Gallery(edits ?? .both)
    let isThere = { (name: BytePath) in isFile(folder.appending(name)) }
    // Only what has a rendered edit is left out for one; most photos have none.
    let isEdited = gallery.edits != .current || edited.contains(name.stem, in: folder)
    if isEdited, case .leftOut(let reason) = gallery.choice(name, isThere) {
      return .leftOut(reason: reason)
    }
    return .at(place(item, named: item.relative, beside: folder.appending(gallery.leader(of: name, isThere))))
  }

  /// Where a file goes under another name than its own. `leader` is the file whose date counts: looked for only where
  /// dates do.
  func place(_ item: TreeItem, named relative: BytePath, beside leader: @autoclosure () -> BytePath) -> BytePath {
    guard let layout else { return arrival(of: relative) }
    let leader = leader()
    let date = CaptureDate(ofLeader: leader) ?? CaptureDate(ofFile: leader) ?? CaptureDate(item.stamp)
    return layout.path(of: relative, taken: date)
  }

  static func gallery(_ arguments: Arguments) throws(UsageError) -> (Layout?, GalleryEdits?) {
    let kinds = GalleryEdits.allCases.map(\.rawValue).joined(separator: ", ")
    let edits = try arguments.parsed("edits", wanted: "one of \(kinds)") { GalleryEdits(rawValue: $0) }
    guard let template = arguments.value("layout") else { return (nil, edits) }
    var problem = ""
    guard let layout = Layout(template, problem: &problem) else {
      throw UsageError("--layout '\(shown(template))': \(problem)")
    }
    return (layout, edits)
  }
}

func isFile(_ path: BytePath) -> Bool {
  var status = stat()
  return path.status(&status) == 0 && status.st_mode & S_IFMT == S_IFREG
}

extension CaptureDate {
  /// What the leader of those that belong together says, else what one of the others does: a Live Photo's film may have
  /// the date that its picture has lost. nil: none says anything. Blocks.
  init?(ofLeader leader: BytePath) {
    var date = CaptureDate.read(from: FileSource(leader))
    if date == nil {
      let name = GalleryName(leader.name)
      let folder = BytePath(leader.bytes.dropLast(name.name.bytes.count))
      let others = Gallery().companions(of: name) { isFile(folder.appending($0)) }
      date = others.lazy.compactMap { CaptureDate.read(from: FileSource(folder.appending($0))) }.first
    }
    guard let date else { return nil }
    self = date
  }

  /// When a file was last written, by the clock of this machine: for pictures that tell nothing.
  fileprivate init(_ stamp: FileStamp) { self.init(secondsSince1970: stamp.modified / 1_000_000_000) }

  fileprivate init?(ofFile path: BytePath) {
    var status = stat()
    if path.status(&status) != 0 { return nil }
    self.init(FileStamp(status))
  }
}

/// Which photos of a folder have a rendered edit, and which a sidecar, from one look at its names for all of them.
final class EditedPhotos: Sendable {
  private struct Look {
    var folder: BytePath = ""
    var stamp: FileStamp?
    var rendered: Set<BytePath> = []
    var noted: Set<BytePath> = []
  }
  private let latest = Mutex(Look())

  /// Blocks.
  func contains(_ stem: BytePath, in folder: BytePath) -> Bool {
    look(at: folder) { $0.rendered.contains(stem) }
  }

  /// Whether a sidecar lies beside it. Blocks.
  func hasNotes(_ stem: BytePath, in folder: BytePath) -> Bool { look(at: folder) { $0.noted.contains(stem) } }

  private func look(at folder: BytePath, _ answer: (Look) -> Bool) -> Bool {
    var status = stat()
    let stamp = folder.status(&status) == 0 ? FileStamp(status) : nil
    var look = latest.withLock { $0 }
    if look.folder != folder || look.stamp == nil || look.stamp != stamp {
      look = Look(folder: folder, stamp: stamp)
      // Without the lock: a thread that is stuck in the folder must not hold up the others.
      Self.fill(&look)
      // It may change once more without another time to show for it.
      if let stamp, stamp.unsettled(at: FileStamp.now) > 0 { look.stamp = nil }
      latest.withLock { $0 = look }
    }
    return answer(look)
  }

  private static func fill(_ look: inout Look) {
    guard let names = OpenFolder(look.folder, "", follow: true) else { return }
    while let name = names.nextName() {
      let name = GalleryName(name)
      if name.isRendered { look.rendered.insert(name.stem) }
      if name.kind == .sidecar { look.noted.insert(name.stem) }
    }
  }
}
