import BlobMedia
import Blobs
import Platform

/// Provides metadata about files of a camera roll to protocols that transmit metadata.
struct GalleryMetadata: Sendable {
  /// Which versions of edited photos are sent. nil sends all files and describes only those of a camera roll.
  let edits: GalleryEdits?

  /// Empty if nothing is known. Looks for related files and reads the file's beginning, so it blocks.
  func metadata(of path: BytePath) -> [String: String] {
    guard edits != nil || path.contains(component: "DCIM") else { return [:] }
    let name = GalleryName(path.name)
    if name.kind == .other { return [:] }
    let folder = path.folder
    let isThere = { (name: BytePath) in isFile(folder.appending(name)) }
    let gallery = Gallery(edits ?? .both)
    var facts = gallery.facts(of: name, isThere)
    facts.captured = CaptureDate(ofLeader: folder.appending(gallery.leader(of: name, isThere)))
    return facts.metadata
  }
}

/// The destination of a file.
enum Placing: Sendable, Hashable {
  /// The path below the destination. A NUL in it stands for the counter of the layout.
  case at(BytePath)
  case leftOut(reason: String)
}

extension PushOptions {
  /// The destination of a file, or why it is not sent. Looks for related files, and reads the file's beginning if the
  /// layout needs the date. This call blocks.
  func placing(of item: TreeItem) -> Placing {
    if layout == nil && edits == nil { return .at(arrival(of: item.relative)) }
    let name = GalleryName(item.path.name)
    let folder = item.path.folder
    let gallery = Gallery(edits ?? .both)
    let isThere = { (name: BytePath) in isFile(folder.appending(name)) }
    // Only files with a rendered edit are left out for it, and most photos have none.
    let isEdited = gallery.edits != .current || edited.contains(name.stem, in: folder)
    if isEdited, case .leftOut(let reason) = gallery.choice(name, isThere) {
      return .leftOut(reason: reason)
    }
    return .at(place(item, named: item.relative, beside: folder.appending(gallery.leader(of: name, isThere))))
  }

  /// The destination of a file under the name `relative`. `leader` is the file whose date counts; it is evaluated only
  /// if the layout needs a date.
  func place(_ item: TreeItem, named relative: BytePath, beside leader: @autoclosure () -> BytePath) -> BytePath {
    guard let layout else { return arrival(of: relative) }
    let leader = leader()
    let date = CaptureDate(ofLeader: leader) ?? CaptureDate(ofFile: leader) ?? CaptureDate(item.stamp)
    let camera = layout.has(.camera) ? CameraName(ofLeader: leader) : nil
    return layout.uncountedPath(of: relative, taken: date, camera: camera)
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

extension CameraName {
  /// The camera in the leader's metadata, otherwise that in another file of its group. nil if there is none. This call
  /// blocks.
  fileprivate init?(ofLeader leader: BytePath) {
    let name = GalleryName(leader.name)
    let folder = leader.folder
    let others = Gallery().companions(of: name) { isFile(folder.appending($0)) }.map { folder.appending($0) }
    guard let found = ([leader] + others).lazy.compactMap({ CameraName.read(from: FileSource($0)) }).first else {
      return nil
    }
    self = found
  }
}

extension CaptureDate {
  /// The date in the leader's metadata, otherwise that of another file in its group: a Live Photo's film may still have
  /// the date that the picture has lost. nil if there is none. This call blocks.
  init?(ofLeader leader: BytePath) {
    var date = CaptureDate.read(from: FileSource(leader))
    if date == nil {
      let name = GalleryName(leader.name)
      let folder = leader.folder
      let others = Gallery().companions(of: name) { isFile(folder.appending($0)) }
      date = others.lazy.compactMap { CaptureDate.read(from: FileSource(folder.appending($0))) }.first
    }
    guard let date else { return nil }
    self = date
  }

  /// The modification time in local time, for pictures without metadata.
  fileprivate init(_ stamp: FileStamp) { self.init(secondsSince1970: stamp.modified / 1_000_000_000) }

  fileprivate init?(ofFile path: BytePath) {
    var status = stat()
    if path.status(&status) != 0 { return nil }
    self.init(FileStamp(status))
  }
}
