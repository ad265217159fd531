import Blobs

/// A file in a hash list that was read.
package struct HashListRecord: Sendable {
  package struct Hash: Sendable, Hashable {
    package var format: HashListFormat
    package var digest: [UInt8]
    /// nil: the list does not say.
    package var action: HashListAction?
  }

  /// Below the folder of the list.
  package var path: BytePath
  /// Where earlier lists have the file; nil: under the same path.
  package var previousPath: BytePath?
  /// Empty: the list has only hashes that are not known here.
  package var hashes: [Hash]
}

/// A list of another history, in a folder below.
package struct HashListReference: Sendable {
  /// The file of the list, below the folder of the history that refers to it.
  package var path: BytePath
  /// The C4 of its bytes.
  package var c4: String
}

/// The facts of a hash list beside its files.
package struct HashListHead: Sendable {
  /// Patterns of names that were left out, as in a `.gitignore`.
  package var ignored: [String] = []
  package var references: [HashListReference] = []
  /// Files of which the list has no hash that is known here.
  package var unknown: [BytePath] = []
}

/// Reads lists and chains of ASC MHL 2.0. They come from outside: each path is checked, and what is not well-formed or large is
/// refused.
package enum HashListReader {
  /// Bytes of the largest list that is read: some 200,000 files.
  package static let most = 64 << 20

  /// `take` gets the files in batches. `name`: of the list, for messages.
  package static func read(
    _ bytes: [UInt8], _ name: BytePath, _ take: ([HashListRecord]) throws(UploadError) -> Void
  ) throws(UploadError) -> HashListHead {
    let result = try withoutActuallyEscaping(take) { take throws(UploadError) in
      let parse = ListParse(take)
      let root = XMLTree(bytes, .none, most: most, depth: 32) { element, parents in parse.take(element, parents) }
      if let error = parse.error { throw error.named(name) }
      guard let root, root.name == "hashlist" else {
        throw problem(name, "it is no hash list of ASC MHL, is damaged, or has more than \(most >> 20) MiB")
      }
      guard root.attribute("version") == "2.0" else {
        throw problem(name, "its version is \(root.attribute("version") ?? "not told"), and only 2.0 is known here")
      }
      try parse.flush()
      parse.head.ignored = root["processinfo"]?["ignore"]?.all("pattern").map(\.text) ?? []
      return parse.head
    }
    return result
  }

  /// The lists of a history in the order of their generations.
  package static func chain(_ bytes: [UInt8], _ name: BytePath) throws(UploadError) -> HashListChain {
    guard let root = XMLTree(bytes, .none, most: 4 << 20, depth: 8), root.name == "ascmhldirectory" else {
      throw problem(name, "it is no chain of ASC MHL, or is damaged")
    }
    let generations = try root.all("hashlist").map { list throws(UploadError) in
      let path = BytePath(list["path"]?.text ?? "")
      guard path.isNameBelow, path.components.count == 1, path.isUTF8 else {
        throw problem(name, "it has a list '\(path)', which is no name of a file")
      }
      guard let number = list.attribute("sequencenr").flatMap({ Int($0) }), 1...1_000_000 ~= number,
        let c4 = list.text("c4"), HashListFormat.c4.digest(c4) != nil
      else { throw problem(name, "it has no number or no C4 for '\(path)'") }
      return HashListChain.Generation(number: number, name: path, c4: c4)
    }
    return HashListChain(generations: generations.sorted { $0.number < $1.number })
  }

  static func problem(_ name: BytePath, _ text: String) -> UploadError {
    UploadError(.giveUp, .file, "hash list \(name): \(text)")
  }
}

extension UploadError {
  fileprivate func named(_ name: BytePath) -> UploadError {
    var error = self
    error.message = "hash list \(name): \(message)"
    return error
  }
}

extension XMLTree {
  fileprivate func attribute(_ name: String) -> String? { attributes.first { $0.name.local == name }?.value }
}

/// Collects the files of a list while it is parsed.
private final class ListParse {
  var head = HashListHead()
  private(set) var error: UploadError?
  private var records: [HashListRecord] = []
  private let batch: ([HashListRecord]) throws(UploadError) -> Void

  init(_ batch: @escaping ([HashListRecord]) throws(UploadError) -> Void) { self.batch = batch }

  func take(_ element: XMLTree, _ parents: [String]) -> Bool {
    switch (parents, element.name) {
    case (["hashlist", "hashes"], "hash"): noting { () throws(UploadError) in try add(element) }
    case (["hashlist", "hashes"], _), (["hashlist"], "metadata"): break
    case (["hashlist", "references"], "hashlistreference"):
      noting { () throws(UploadError) in
        head.references.append(.init(path: try path(element["path"]), c4: element.text("c4") ?? ""))
      }
    default: return false
    }
    return true
  }

  func flush() throws(UploadError) {
    try batch(records)
    records.removeAll(keepingCapacity: true)
  }

  private func noting(_ body: () throws(UploadError) -> Void) {
    if error != nil { return }
    do throws(UploadError) { try body() } catch let problem { error = problem }
  }

  private func add(_ element: XMLTree) throws(UploadError) {
    let path = try path(element["path"])
    var hashes: [HashListRecord.Hash] = []
    for child in element.children {
      guard let format = HashListFormat(rawValue: child.name) else { continue }
      guard let digest = format.digest(child.text) else {
        throw UploadError(.giveUp, .file, "'\(path)': what it has as \(format) is none")
      }
      hashes.append(
        .init(format: format, digest: digest, action: child.attribute("action").flatMap { .init(rawValue: $0) }))
    }
    if hashes.isEmpty { head.unknown.append(path) }
    let previous = try element["previousPath"].map { previous throws(UploadError) in try self.path(previous) }
    records.append(HashListRecord(path: path, previousPath: previous, hashes: hashes))
    if records.count == 500 { try flush() }
  }

  /// A path below the folder of the list.
  private func path(_ element: XMLTree?) throws(UploadError) -> BytePath {
    let path = BytePath(element?.text ?? "")
    if path.isNameBelow { return path }
    throw UploadError(.giveUp, .file, "'\(path)' is no path below its folder")
  }
}
