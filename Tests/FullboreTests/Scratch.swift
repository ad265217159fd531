import Blobs
import Platform

@testable import fullbore

/// A temporary folder for one test, removed together with this object.
final class Scratch: Sendable {
  let path: BytePath

  init() {
    let parent = environment("TMPDIR") ?? "/tmp"
    var template = parent.appending("fullbore-test-XXXXXX").bytes.map { CChar(bitPattern: $0) } + [0]
    precondition(mkdtemp(&template) != nil)
    path = template.withUnsafeBufferPointer { BytePath(cString: $0.baseAddress!) }
  }

  deinit { removeTree(path) }

  func folder(_ name: BytePath) {
    var path = path
    for component in name.components {
      path = path.appending(component)
      _ = path.withCString { mkdir($0, 0o755) }
    }
  }

  /// Writes a file, and creates its folders.
  @discardableResult
  func file(_ name: BytePath, _ bytes: [UInt8] = [1, 2, 3]) -> BytePath {
    folder(BytePath(name.components.dropLast().map { $0.bytes }.joined(separator: [UInt8(ascii: "/")])))
    let path = path.appending(name)
    let descriptor = path.withCString { creat($0, 0o644) }
    precondition(descriptor >= 0)
    precondition(bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) } == bytes.count)
    close(descriptor)
    return path
  }

  func link(_ name: BytePath, to target: BytePath) {
    precondition(target.withCString { target in path.appending(name).withCString { symlink(target, $0) } } == 0)
  }

  func content(of name: BytePath) -> [UInt8] {
    guard let file = path.appending(name).withCString({ fopen($0, "r") }) else { return [] }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk.prefix(count) }
    return bytes
  }
}

/// The message of the usage error that `body` throws; nil if it throws none.
func usageError(_ body: () throws(UsageError) -> Void) -> String? {
  do throws(UsageError) {
    try body()
    return nil
  } catch {
    return error.message
  }
}

/// Removes a file or folder tree without following links; files that cannot be removed stay.
func removeTree(_ path: BytePath) {
  if path.withCString({ unlink($0) }) == 0 { return }
  var names = NameList()
  // The folder is closed before its subfolders are entered: a deep tree must not exhaust the descriptors.
  if let folder = OpenFolder(path, "", follow: false) {
    while let name = folder.nextName() { names.append(name) }
  }
  while !names.isEmpty { removeTree(path.appending(names.popLast())) }
  _ = path.withCString { rmdir($0) }
}
