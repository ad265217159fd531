import Blobs

/// The other files of the cards of which the sources are a part: formatting a card also deletes files that were not compared.
enum CardRest {
  /// Files and folders on the way from the folder that contains `DCIM` down to the sources, which are not on the way to
  /// any source, sorted. Names that begin with a dot are left out. This call blocks.
  static func paths(beside sources: [BytePath]) -> [BytePath] {
    let sources = sources.map { source in source.absolute().components.filter { $0 != "." } }
    var found: Set<BytePath> = []
    for source in sources {
      guard let depth = source.firstIndex(of: "DCIM") else { continue }
      for depth in depth..<source.count {
        let folder = source[..<depth].reduce(into: BytePath("/")) { $0 = $0.appending($1) }
        let entries = OpenFolder(folder, "", follow: true)
        while let name = entries?.nextName() {
          let entry = source[..<depth] + [name]
          let isCompared = sources.contains { $0.starts(with: entry) || entry.starts(with: $0) }
          if !isCompared, name.bytes.first != UInt8(ascii: ".") { found.insert(folder.appending(name)) }
        }
      }
    }
    return found.sorted()
  }
}
