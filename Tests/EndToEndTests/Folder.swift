import Foundation
import Testing

/// The content of a folder as bytes: names are compared as stored, and files are compared completely.
struct Folder {
  let path: String

  init(_ path: String) { self.path = path }

  /// Sizes of all files in the folder by relative path, without the server's internal files.
  func files() -> [String: Int] {
    var found: [String: Int] = [:]
    walk("") { name, size in if !name.hasPrefix(".fullbore/") { found[name] = size } }
    return found
  }

  /// Bytes in all files, including the server's unfinished uploads.
  func received() -> Int {
    var total = 0
    walk("") { total += $1 }
    return total
  }

  /// Bytes in uploads that the server has not published.
  func unfinished() -> Int {
    var total = 0
    walk("") { name, size in if name.hasPrefix(".fullbore/") && name.hasSuffix(".data") { total += size } }
    return total
  }

  /// Expects the same files with the same bytes here and in `other`.
  func expectSame(as other: Folder, sourceLocation: SourceLocation = #_sourceLocation) {
    let mine = files()
    let theirs = other.files()
    #expect(mine.keys.sorted() == theirs.keys.sorted(), sourceLocation: sourceLocation)
    for name in mine.keys where theirs[name] != nil {
      #expect(hasSameBytes(name, as: other), "\(name) differs", sourceLocation: sourceLocation)
    }
  }

  /// For a server that chooses its own file names: expects each sent content, and no other content.
  func expectSameContents(in received: Folder, sourceLocation: SourceLocation = #_sourceLocation) {
    let there = received.files().keys.sorted()
    #expect(there.count == files().count, sourceLocation: sourceLocation)
    for name in files().keys {
      let isThere = there.contains { other in
        FileManager.default.contentsEqual(atPath: "\(path)/\(name)", andPath: "\(received.path)/\(other)")
      }
      #expect(isThere, "\(name) did not arrive", sourceLocation: sourceLocation)
    }
  }

  func hasSameBytes(_ name: String, as other: Folder) -> Bool {
    FileManager.default.contentsEqual(atPath: "\(path)/\(name)", andPath: "\(other.path)/\(name)")
  }

  /// Ignores files that vanish during the walk, because a server renames them.
  private func walk(_ below: String, _ visit: (String, Int) -> Void) {
    guard let folder = opendir(below.isEmpty ? path : "\(path)/\(below)") else { return }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name == "." || name == ".." { continue }
      let relative = below.isEmpty ? name : "\(below)/\(name)"
      var status = stat()
      if lstat("\(path)/\(relative)", &status) != 0 { continue }
      if status.st_mode & S_IFMT == S_IFDIR { walk(relative, visit) } else { visit(relative, Int(status.st_size)) }
    }
  }
}
