import BlobMedia
import Blobs
import Glibc

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
    if layout == nil && !choosesEdits(at: item.path) { return .at(arrival(of: item.relative)) }
    let name = GalleryName(item.path.name)
    let folder = BytePath(item.path.bytes.dropLast(name.name.bytes.count))
    let gallery = Gallery(edits ?? .current)
    let isThere = { (name: BytePath) in isFile(folder.appending(name)) }
    if choosesEdits(at: item.path), case .leftOut(let reason) = gallery.choice(name, isThere) {
      return .leftOut(reason: reason)
    }
    guard let layout else { return .at(arrival(of: item.relative)) }
    let leader = folder.appending(gallery.leader(of: name, isThere))
    let date = CaptureDate.read(from: FileSource(leader)) ?? CaptureDate(ofFile: leader) ?? CaptureDate(item.stamp)
    return .at(layout.path(of: item.relative, taken: date))
  }

  /// Elsewhere names like a camera's may mean anything.
  private func choosesEdits(at path: BytePath) -> Bool { edits != nil || path.components.contains("DCIM") }

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

private func isFile(_ path: BytePath) -> Bool {
  var status = stat()
  return path.status(&status) == 0 && status.st_mode & S_IFMT == S_IFREG
}

extension CaptureDate {
  /// When a file was last written, by the clock of this machine: for pictures that tell nothing.
  fileprivate init(_ stamp: FileStamp) { self.init(secondsSince1970: stamp.modified / 1_000_000_000) }

  fileprivate init?(ofFile path: BytePath) {
    var status = stat()
    if path.status(&status) != 0 { return nil }
    self.init(FileStamp(status))
  }
}
