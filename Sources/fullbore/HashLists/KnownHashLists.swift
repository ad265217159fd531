import BlobSQLite
import BlobUpload
import Blobs
import Platform
import Synchronization

/// The hash lists that files are compared with: one list, or a history with those in the folders below.
final class KnownHashLists: Sendable {
  let table: HashListTable
  /// The folder of the files, absolute.
  let folder: BytePath
  private let state = Mutex(State())

  private struct State {
    var ignored: Set<BytePath> = []
    var globs: [Glob] = []
    var unknown: Set<BytePath> = []
  }

  /// Files of which the lists have only hashes that are not known here.
  var unknown: Set<BytePath> { state.withLock { $0.unknown } }

  /// Reads the lists. An invalid list to which another list refers is reported.
  init(_ file: BytePath, _ folder: BytePath?, _ report: HashListReport) async throws(UploadError) {
    table = try await onThread { () throws(SQLiteError) in try HashListTable() }
    let isFolder = await BlockingPool.shared.run { OpenFolder(file, "", follow: true) != nil }
    let isList = !isFolder && file.name != HashListChain.name
    // The folder `ascmhl` with the lists.
    let history: BytePath =
      isFolder ? (file.name == HashListChain.folder ? file : file.appending(HashListChain.folder)) : file.parent
    let isHistory = history.name == HashListChain.folder
    self.folder = folder ?? (isHistory ? history.parent : history)
    let place = HashListBesideFiles(folder: history.parent)
    if isList {
      guard let bytes = try await contentOfFile(file, atMost: HashListReader.most) else {
        throw UploadError(.giveUp, .file, "\(file): there is no such hash list")
      }
      if isHistory, let known = try await place.chain().generations.first(where: { $0.name == file.name }) {
        _ = try await place.list(known)
      }
      try await add(bytes, file, in: "", report)
      return
    }
    let found = try await add(place, in: "", report)
    if !found {
      throw UploadError(
        .giveUp, .file,
        "\(history): there is no \(HashListChain.name), which names the lists of a history: give --mhl the file of "
          + "one list")
    }
    let below = try await histories(in: self.folder)
    for relative in below {
      report.notice("\(relative) has hash lists of its own, which are followed")
      _ = try await add(HashListBesideFiles(folder: self.folder.appending(relative)), in: relative, report)
    }
  }

  /// Whether the lists leave out files of that name.
  func ignores(_ path: BytePath) -> Bool {
    state.withLock { $0.globs }.contains { glob in
      !glob.isOfFolder && glob.matches([path], path.name) || glob.matchesFolder(of: [path])
    }
  }

  /// Adds all lists of a history. Returns false if there is none.
  private func add(
    _ place: HashListBesideFiles, in relative: BytePath, _ report: HashListReport
  ) async throws(UploadError) -> Bool {
    let chain = try await place.chain()
    for generation in chain.generations {
      let bytes = try await place.list(generation)
      try await add(bytes, place.shownName(generation.name), in: relative, report)
    }
    return !chain.generations.isEmpty
  }

  private func add(
    _ bytes: [UInt8], _ name: BytePath, in relative: BytePath, _ report: HashListReport
  ) async throws(UploadError) {
    let head = try await readHashList(bytes, name, into: table, in: relative)
    state.withLock { state in
      for path in head.unknown { state.unknown.insert(relative.isEmpty ? path : relative.appending(path)) }
      for pattern in head.ignored where !pattern.hasPrefix("!") && !pattern.hasPrefix("#") {
        if state.ignored.insert(BytePath(pattern)).inserted { state.globs.append(Glob(BytePath(pattern))) }
      }
    }
    for reference in head.references {
      let path = (relative.isEmpty ? folder : folder.appending(relative)).appending(reference.path)
      let list = try await contentOfFile(path, atMost: HashListReader.most)
      if let list, HashListChain.matches(list, .init(number: 1, name: reference.path, c4: reference.c4)) { continue }
      report.broken(path, "\(name) refers to it, and it \(list == nil ? "is not there" : "has changed since")")
    }
  }

  /// The folders below that have a history.
  private func histories(in folder: BytePath) async throws(UploadError) -> [BytePath] {
    try await readingSource { _, noteRead throws(BlobError) in
      let found = Mutex<[BytePath]>([])
      let tree = FileTree([folder.appending("")], TreeOptions(includesHidden: true)) { _, relative in
        if relative.name == HashListChain.folder, relative != HashListChain.folder {
          found.withLock { $0.append(relative.parent) }
        }
      }
      while !tree.next(max: 1000, noteProgress: { noteRead(1) }).isEmpty {}
      return found.withLock { $0 }
    }
  }
}

/// Adds a list to the table, as an earlier one. `relative`: the folder of the list below that of the table.
func readHashList(
  _ bytes: [UInt8], _ name: BytePath, into table: HashListTable, in relative: BytePath = ""
) async throws(UploadError) -> HashListHead {
  let result: Result<HashListHead, UploadError> = await BlockingPool.shared.run {
    Result { () throws(UploadError) in
      try HashListReader.read(bytes, name) { records throws(UploadError) in
        do throws(SQLiteError) { try table.add(earlier: records, in: relative) } catch {
          throw UploadError(.giveUp, .file, error.description)
        }
      }
    }
  }
  return try result.get()
}
