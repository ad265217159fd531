import BlobUpload
import Blobs
import Platform

/// Where the history of a folder is read and written.
protocol HashListPlace: Sendable {
  /// For messages.
  var title: String { get }
  /// The name of the folder, which is in the names of its lists.
  var folderName: BytePath { get }
  /// The content of a file in `ascmhl`; nil: there is none.
  func content(of name: BytePath, atMost most: Int) async throws(UploadError) -> [UInt8]?
  func write(_ source: any BlobSource, _ info: BlobInfo, as name: BytePath, replaces: Bool) async throws(UploadError)
}

extension HashListPlace {
  /// The chain of the history; empty: there is no history.
  func chain() async throws(UploadError) -> HashListChain {
    guard let bytes = try await content(of: HashListChain.name, atMost: 4 << 20) else { return HashListChain() }
    return try HashListReader.chain(bytes, shownName(HashListChain.name))
  }

  /// The bytes of a list, if they are those that the chain knows.
  func list(_ generation: HashListChain.Generation) async throws(UploadError) -> [UInt8] {
    guard let bytes = try await content(of: generation.name, atMost: HashListReader.most) else {
      throw UploadError(.giveUp, .file, "\(title): the chain has the list \(generation.name), which is not there")
    }
    if HashListChain.matches(bytes, generation) { return bytes }
    throw UploadError(
      .giveUp, .file, "\(title): the list \(generation.name) has changed since its C4 was written to the chain")
  }

  func shownName(_ name: BytePath) -> BytePath { BytePath("\(title)\(name)") }
}

/// A history at the destination.
struct HashListAtDestination: HashListPlace {
  let run: PushRun
  /// The folder of the files, below the destination; empty: the folder of the destination.
  let root: BytePath

  private func path(_ name: BytePath) -> BytePath {
    [root, HashListChain.folder, name].filter { !$0.isEmpty }.reduce(into: BytePath("")) { path, part in
      path = path.isEmpty ? part : path.appending(part)
    }
  }

  var title: String { "\(run.destination.endpoint.folder)\(path(""))/" }

  var folderName: BytePath {
    let name =
      root.isEmpty
      ? run.destination.endpoint.folder.path.split(separator: "/").last.map { BytePath(String($0)) } : root.name
    return name ?? ""
  }

  func content(of name: BytePath, atMost most: Int) async throws(UploadError) -> [UInt8]? {
    let target = run.destination.target(path(name), length: nil)
    do throws(UploadError) {
      return try await run.uploader.content(of: target, atMost: most)
    } catch {
      throw await completed(error, run.journal)
    }
  }

  func write(
    _ source: any BlobSource, _ info: BlobInfo, as name: BytePath, replaces: Bool
  ) async throws(UploadError) {
    let target = run.destination.target(
      path(name), length: info.length, contentType: "application/xml", overwrite: replaces)
    let result = try await run.uploader.upload(source, info, to: target)
    if run.settings.verifies { try await run.uploader.verify(source, info, at: target, location: result.location) }
  }
}

/// A history beside files of this machine.
struct HashListBesideFiles: HashListPlace {
  /// The folder of the files.
  let folder: BytePath

  var title: String { "\(folder.appending(HashListChain.folder))/" }
  var folderName: BytePath { folder.name }

  private func path(_ name: BytePath) -> BytePath { folder.appending(HashListChain.folder).appending(name) }

  func content(of name: BytePath, atMost most: Int) async throws(UploadError) -> [UInt8]? {
    try await contentOfFile(path(name), atMost: most)
  }

  func write(
    _ source: any BlobSource, _ info: BlobInfo, as name: BytePath, replaces: Bool
  ) async throws(UploadError) {
    try await readingSource { cancel, noteRead throws(BlobError) in
      let (path, part) = (path(name), path(BytePath(name.bytes + ".tmp".utf8)))
      let isMade = path.folder.withCString { mkdir($0, 0o777) } == 0
      if !isMade, errno != EEXIST { throw Self.failed("make the folder", path.folder) }
      let descriptor = part.withCString { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666) }
      if descriptor < 0 { throw Self.failed("create", part) }
      defer { close(descriptor) }
      let reader = try source.open(at: 0, cancel)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      while true {
        let count = try reader.read(into: buffer)
        if count == 0 { break }
        noteRead(count)
        var rest = UnsafeRawBufferPointer(rebasing: buffer.prefix(count))
        while !rest.isEmpty {
          let written = Platform.write(descriptor, rest.baseAddress, rest.count)
          if written < 0 { throw Self.failed("write", part) }
          rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
        }
      }
      if fsync(descriptor) != 0 { throw Self.failed("write", part) }
      let isRenamed = part.withCString { part in path.withCString { rename(part, $0) == 0 } }
      if !isRenamed { throw Self.failed("rename", part) }
    }
  }

  /// Advice for an error of `write`; nil: there is none.
  static func advice(for error: UploadError) -> String? {
    guard let number = (error.cause as? BlobError)?.errno, [EROFS, EACCES, EPERM, ENOSPC].contains(number) else {
      return nil
    }
    return "--mhl-at destination writes the hash lists at the destination only"
  }

  private static func failed(_ operation: String, _ path: BytePath) -> BlobError {
    BlobError(.io, "\(operation) \(path): \(String(cString: strerror(errno)))", errno: errno)
  }
}

/// The content of a small file; nil: there is no file of that name. Throws if it has more than `most` bytes.
func contentOfFile(_ path: BytePath, atMost most: Int) async throws(UploadError) -> [UInt8]? {
  try await readingSource { cancel, noteRead throws(BlobError) in
    let source = FileSource(path)
    let reader: any BlobReader
    do throws(BlobError) { reader = try source.open(at: 0, cancel) } catch {
      if error.code == .notFound { return nil }
      throw error
    }
    var bytes: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try reader.read(into: buffer)
      if count == 0 { return bytes }
      noteRead(count)
      bytes += buffer.prefix(count)
      if bytes.count > most { throw BlobError(.unsupported, "\(path): it has more than \(most) bytes") }
    }
  }
}
