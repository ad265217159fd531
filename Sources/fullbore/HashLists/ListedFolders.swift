import BlobSQLite
import BlobUpload
import Blobs
import Synchronization

/// Records the files of a push for its hash lists. Each folder that the destination gets as a folder of its own has one
/// list.
final class ListedFolders: Sendable {
  /// A folder that gets a list.
  struct Root: Sendable, Hashable {
    /// The folder here, absolute; nil: the files are from several places.
    let source: BytePath?
    /// The path at the destination; empty: the folder of the destination.
    let path: BytePath
    /// All folders here whose contents arrive there, absolute.
    let sources: [BytePath]
  }

  private struct Noted: Sendable {
    let item: UploadItem
    let digest: [UInt8]?
    let replaces: Bool
  }
  private struct State {
    var noted: [Noted] = []
    var tables: [BytePath: HashListTable] = [:]
    var compared = FileCount()
  }
  /// How many files there are, and how many of them were compared with the destination.
  struct FileCount: Sendable {
    var all = 0
    var compared = 0
  }
  let options: HashListOptions
  let roots: [Root]
  /// The push compares each file that it sends with the destination.
  private let verifies: Bool
  private let state = Mutex(State())

  /// Finds out which of the sources are folders. This call blocks.
  init(_ options: HashListOptions, _ push: PushOptions) {
    (self.options, verifies) = (options, push.verifies)
    var roots: [Root] = []
    for source in push.sources where push.layout == nil && OpenFolder(source.absolute(), "", follow: true) != nil {
      let path = push.arrival(of: source.sendsContents ? "" : source.name)
      let end = path.hasTrailingSlash ? 1 : 0
      let folder = source.absolute()
      roots.append(Root(source: folder, path: BytePath(path.bytes.dropLast(end)), sources: [folder]))
    }
    let own = roots.filter { !$0.path.isEmpty }
    let rest = roots.filter { $0.path.isEmpty }
    // The sources whose contents arrive in one folder have one list.
    let only = rest.count == 1 && push.sources.count == 1 ? rest[0].source : nil
    self.roots = own + [Root(source: only, path: "", sources: rest.flatMap(\.sources))]
  }

  /// A file is at the destination. Called on any thread.
  func note(_ item: UploadItem, _ outcome: UploadOutcome) {
    switch outcome {
    case .sent(let result, _):
      note(Noted(item: item, digest: result.digest, replaces: item.target.overwrite), isCompared: verifies)
    case .doneBefore(let evidence):
      note(Noted(item: item, digest: nil, replaces: false), isCompared: evidence == .bytes || evidence == .digest)
    case .busy, .failed: break
    }
  }

  private func note(_ noted: Noted, isCompared: Bool) {
    state.withLock { state in
      state.noted.append(noted)
      state.compared.all += 1
      if isCompared { state.compared.compared += 1 }
    }
  }

  var count: FileCount { state.withLock { $0.compared } }

  /// Moves what was noted to the tables. Returns the paths that a list cannot have.
  func flush() async throws(UploadError) -> [BytePath] {
    let noted = state.withLock { state in
      defer { state.noted = [] }
      return state.noted
    }
    if noted.isEmpty { return [] }
    return try await onThread { () throws(SQLiteError) in
      var refused: [BytePath] = []
      var files: [BytePath: [HashListFile]] = [:]
      for noted in noted {
        let (root, path) = self.place(of: noted.item.target.path)
        if path.contains(component: "ascmhl") { continue }
        guard path.canBeInXML else {
          refused.append(noted.item.identity)
          continue
        }
        let identity = noted.item.identity
        files[root, default: []].append(
          HashListFile(
            path: path, size: noted.item.info.length ?? 0, modified: noted.item.info.modified,
            source: identity.isAbsolute ? identity : nil, digest: noted.digest, replaces: noted.replaces))
      }
      let now = FileStamp.now / 1_000_000_000
      for (root, files) in files { try self.table(of: root).add(files, self.options.format, date: now) }
      return refused
    }
  }

  /// The table of a folder that gets a list; nil: none of its files is at the destination.
  func table(ofListed root: Root) -> HashListTable? { state.withLock { $0.tables[root.path] } }

  private func table(of root: BytePath) throws(SQLiteError) -> HashListTable {
    if let table = state.withLock({ $0.tables[root] }) { return table }
    let table = try HashListTable()
    state.withLock { $0.tables[root] = table }
    return table
  }

  /// The folder that has the file, and the path of the file below it.
  private func place(of path: BytePath) -> (root: BytePath, path: BytePath) {
    let root = roots.map(\.path).filter { !$0.isEmpty && path.bytes.starts(with: $0.bytes + [UInt8(ascii: "/")]) }
      .max { $0.bytes.count < $1.bytes.count }
    guard let root else { return ("", path) }
    return (root, BytePath(path.bytes.dropFirst(root.bytes.count + 1)))
  }
}

/// Calls SQLite on a thread that may block.
func onThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws(SQLiteError) -> Result
) async throws(UploadError) -> Result {
  do throws(SQLiteError) {
    return try await BlockingPool.shared.run(body)
  } catch {
    throw UploadError(.giveUp, .file, "hash list: \(error)")
  }
}
