import Foundation
import Testing

/// What is in a folder, as bytes see it: names are compared as they are stored, contents are compared whole.
struct Folder {
  let path: String

  init(_ path: String) { self.path = path }

  /// Every file below, by its path from here; what the server keeps aside is left out.
  func files() -> [String: Int] {
    var found: [String: Int] = [:]
    walk("") { name, size in if !name.hasPrefix(".fullbore/") { found[name] = size } }
    return found
  }

  /// Bytes in all files, the unfinished uploads of a server among them.
  func received() -> Int {
    var total = 0
    walk("") { total += $1 }
    return total
  }

  /// Bytes in uploads that a server has begun and not published.
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

  /// For a server that gives files names of its own: every content is there, and none that was not sent.
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

  /// Files that vanish while it looks are no error: a server renames them.
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
