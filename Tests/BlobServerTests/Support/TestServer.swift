import BlobHTTP
import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// A server with a temporary folder; both end with this object.
final class TestServer {
  let folder: TestFolder
  let server: Server

  convenience init(_ change: (inout ServerOptions) -> Void = { _ in }) throws {
    try self.init(over: TestFolder(), change)
  }

  init(_ folder: TestFolder, _ server: Server) { (self.folder, self.server) = (folder, server) }

  init(over folder: TestFolder, _ change: (inout ServerOptions) -> Void = { _ in }) throws {
    self.folder = folder
    var options = ServerOptions(folder: folder.path, port: 0)
    change(&options)
    server = try Server(options)
  }

  /// A server whose store has these abilities only.
  init(abilities: StoreAbilities) throws {
    folder = try TestFolder()
    let options = ServerOptions(folder: folder.path, port: 0)
    server = try Server(options, LimitedStore(FileStore(folder.path, expire: options.expire), abilities))
  }

  deinit { server.stop(grace: .zero) }

  func client() throws -> RawHTTPClient { try RawHTTPClient(port: server.port) }

  /// Sends one request on a new connection.
  func ask(
    _ method: String, _ path: String, _ headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws -> RawHTTPClient.Answer {
    try client().ask(method, path, headers, body: body)
  }

  // MARK: tus

  /// Creates an upload and returns its path.
  func create(_ name: String, length: Int?, metadata: String = "", in folder: String = "/") throws -> String {
    let size = length.map { ("Upload-Length", "\($0)") } ?? ("Upload-Defer-Length", "1")
    let answer = try ask(
      "POST", folder, [tus, size, ("Upload-Metadata", "filename \(base64(name))\(metadata)")], body: [])
    try #require(answer.status == 201)
    return try #require(answer["Location"])
  }

  func patch(
    _ upload: String, at offset: Int, _ body: [UInt8], _ more: [(String, String)] = []
  ) throws -> RawHTTPClient.Answer {
    try ask("PATCH", upload, patchHead(offset) + more, body: body)
  }

  /// Starts a PATCH that announces `length` bytes, sends the first `sent` bytes of `body` (nil: all), and stays open.
  func beginPatch(
    _ upload: String, at offset: Int, length: Int, _ body: [UInt8], more: [(String, String)] = [], sent: Int? = nil
  ) throws -> RawHTTPClient {
    let client = try client()
    try client.head("PATCH", upload, patchHead(offset) + more + [("Content-Length", "\(length)")])
    try client.send(Array(body.prefix(sent ?? body.count)))
    return client
  }

  private func patchHead(_ offset: Int) -> [(String, String)] {
    [tus, ("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "\(offset)")]
  }

  func offset(_ upload: String) throws -> Int {
    let answer = try ask("HEAD", upload, [tus])
    try #require(answer.status == 200)
    return try #require(answer["Upload-Offset"].flatMap { Int($0) })
  }
}

let tus = ("Tus-Resumable", "1.0.0")

/// A folder in /tmp, which is deleted with its content.
final class TestFolder: Sendable {
  let path: BytePath

  init() throws {
    var template = Array("/tmp/fullbore-server-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BlobError(.io, "mkdtemp: \(errno)") }
    path = BytePath(cString: template)
  }

  deinit { Self.remove(path) }

  func write(_ name: BytePath, _ bytes: [UInt8]) {
    path.appending(name).withCString { place in
      let file = open(place, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
      _ = bytes.withUnsafeBytes { Platform.write(file, $0.baseAddress, $0.count) }
      close(file)
    }
  }

  /// nil if the file does not exist.
  func read(_ name: BytePath) -> [UInt8]? {
    path.appending(name).withCString { place in
      let file = open(place, O_RDONLY)
      if file < 0 { return nil }
      defer { close(file) }
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      while true {
        let count = Platform.read(file, &buffer, buffer.count)
        if count <= 0 { return bytes }
        bytes += buffer.prefix(count)
      }
    }
  }

  func makeFolder(_ name: BytePath) { path.appending(name).withCString { _ = mkdir($0, 0o755) } }

  func link(_ name: BytePath, to target: BytePath) {
    path.appending(name).withCString { place in target.withCString { _ = symlink($0, place) } }
  }

  /// Names of the store's files for unfinished uploads and finished records, without the lock file.
  var kept: [String] {
    Self.names(path.appending(".fullbore")).map(\.description).filter { $0 != "lock" }.sorted()
  }

  static func names(_ path: BytePath) -> [BytePath] {
    guard let stream = path.withCString({ opendir($0) }) else { return [] }
    defer { closedir(stream) }
    var names: [BytePath] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { BytePath(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Deletes the folder that `init` has created, and nothing else: symbolic links are deleted but not followed, and
  /// files on another device stay. For a test with a link to `..`, only the link is deleted.
  private static func remove(_ path: BytePath) {
    precondition(path.description.hasPrefix("/tmp/fullbore-server-") && path.components.count == 2)
    let folder = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    if folder < 0 { return }
    var status = stat()
    if fstat(folder, &status) == 0 { empty(folder, device: status.st_dev) }
    close(folder)
    path.withCString { _ = rmdir($0) }
  }

  /// Deletes the content of an open folder. Neither the stack nor the number of open files grows with the depth of the
  /// tree: each nested folder that is not empty is moved to the top folder and emptied there.
  private static func empty(_ folder: Int32, device: dev_t) {
    var moved = 0
    var seen: Set<BytePath> = []
    while true {
      let names = names(in: folder).filter { seen.insert($0).inserted }
      if names.isEmpty { return }
      for name in names {
        guard let inner = remove(name, from: folder, device: device) else { continue }
        for name in Self.names(in: inner) {
          guard let nested = remove(name, from: inner, device: device) else { continue }
          close(nested)
          moved += 1
          name.withCString { old in _ = renameat(inner, old, folder, "moved \(moved)") }
        }
        close(inner)
        name.withCString { _ = unlinkat(folder, $0, AT_REMOVEDIR) }
      }
    }
  }

  /// Deletes a file that is not a folder; a folder is opened and returned.
  private static func remove(_ name: BytePath, from folder: Int32, device: dev_t) -> Int32? {
    name.withCString { place in
      var status = stat()
      guard fstatat(folder, place, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_dev == device else { return nil }
      if status.st_mode & S_IFMT != S_IFDIR {
        unlinkat(folder, place, 0)
        return nil
      }
      let inner = openat(folder, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      return inner < 0 ? nil : inner
    }
  }

  private static func names(in folder: Int32) -> [BytePath] {
    let copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0, let stream = fdopendir(copy) else { return [] }
    defer { closedir(stream) }
    var names: [BytePath] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { BytePath(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}

/// Bytes that vary with their position and with the seed.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ ($0 >> 8) &+ seed) }
}

func base64(_ text: String) -> String { base64(Array(text.utf8)) }

func base64(_ bytes: [UInt8]) -> String {
  let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  var coded = ""
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let number = (0..<3).reduce(0) { $0 << 8 | ($1 < group.count ? Int(group[start + $1]) : 0) }
    for digit in 0..<4 { coded.append(digit <= group.count ? digits[number >> (18 - 6 * digit) & 63] : "=") }
  }
  return coded
}

/// Waits until the server's threads have made the condition true, for 30 seconds at most.
func eventually(_ condition: () throws -> Bool) throws -> Bool {
  let deadline = ContinuousClock.now + .seconds(30)
  while ContinuousClock.now < deadline {
    if try condition() { return true }
    usleep(5_000)
  }
  return false
}

extension TestFolder {
  /// Extends a file without writing to it.
  func extend(_ name: BytePath, to length: Int64) -> Bool {
    path.appending(name).withCString { truncate($0, off_t(length)) == 0 }
  }

  /// Whether this process, which includes the server, has the file open.
  func isOpen(_ name: BytePath) -> Bool {
    TestFolder.names("/proc/self/fd").contains { number in
      BytePath("/proc/self/fd").appending(number).withCString { link in
        var target = [UInt8](repeating: 0, count: 4096)
        let count = target.withUnsafeMutableBytes { readlink(link, $0.baseAddress!, $0.count) }
        return count > 0 && BytePath(target.prefix(count)) == path.appending(name)
      }
    }
  }

  func rename(_ name: BytePath, to other: BytePath) {
    path.appending(name).withCString { old in
      path.appending(other).withCString { _ = Platform.rename(old, $0) }
    }
  }

  func remove(_ name: BytePath) { path.appending(name).withCString { _ = Platform.unlink($0) } }

  /// Sets the file's modification time to this many seconds ago.
  func age(_ name: BytePath, seconds: Int) {
    path.appending(name).withCString { place in
      let then = timespec(tv_sec: time(nil) - seconds, tv_nsec: 0)
      _ = utimensat(AT_FDCWD, place, [then, then], 0)
    }
  }

  /// Makes a hole in the data of the only unfinished upload, which keeps its size.
  func makeHoleInKept(at start: Int, length: Int) throws {
    let name = try #require(kept.first { $0.hasSuffix(".data") })
    let file = path.appending(BytePath(".fullbore/\(name)")).withCString { open($0, O_RDWR) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = pread(file, &bytes, bytes.count, 0)
    #expect(ftruncate(file, off_t(start)) == 0)
    let end = start + length
    #expect(bytes[end..<count].withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(end)) } == count - end)
  }

  /// Bytes of all unfinished uploads.
  var sizeOfKept: Int64 {
    kept.filter { $0.hasSuffix(".data") }.reduce(0) { sum, name in
      var status = stat()
      path.appending(BytePath(".fullbore/\(name)")).withCString { _ = stat($0, &status) }
      return sum + Int64(status.st_size)
    }
  }
}
