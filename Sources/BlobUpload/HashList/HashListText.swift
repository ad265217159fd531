import BlobSQLite
import Blobs

/// The text of a list, part by part.
struct HashListText: Sendable {
  let table: HashListTable
  let facts: HashListFacts

  /// The list up to its first file.
  func head() throws(SQLiteError) -> String {
    let patterns = facts.ignored.map { "      <pattern>\($0.escapedXML)</pattern>\n" }.joined()
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">
        <creatorinfo>
          <creationdate>\(dateText(facts.date) ?? "")</creationdate>
          <hostname>\(facts.host.escapedXML)</hostname>
          <tool version="\(facts.version.escapedXML)">fullbore</tool>
          <comment>\(facts.comment.escapedXML)</comment>
        </creatorinfo>
        <processinfo>
          <process>transfer</process>
      \(facts.hasFolders ? try root() : "")    <ignore>
      \(patterns)    </ignore>
        </processinfo>
        <hashes>

      """
  }

  static let end = "  </hashes>\n</hashlist>\n"

  /// The elements of the files after `path`, and the path of the last one; nil: there are no more.
  func files(after path: BytePath) throws(SQLiteError) -> (String, BytePath?) {
    try table.with { database throws(SQLiteError) in
      let select = try database.statement(
        """
        SELECT f.path, size, modified, format, digest, date, action FROM
          (SELECT * FROM file WHERE path > ? ORDER BY path LIMIT 200) f JOIN hash USING(path) ORDER BY f.path, format
        """)
      try select.bind(1, path.bytes)
      var text = ""
      var last: BytePath?
      while try select.step() {
        let path = BytePath(select.blob(0) ?? [])
        if path != last {
          if last != nil { text += "    </hash>\n" }
          let modified = select.intOrNil(2).flatMap { dateText($0 / 1_000_000_000) }
          text += "    <hash>\n      <path size=\"\(select.int(1))\""
          if let modified { text += " lastmodificationdate=\"\(modified)\"" }
          text += ">\(path.description.escapedXML)</path>\n"
          last = path
        }
        guard let format = select.text(3).flatMap({ HashListFormat(rawValue: $0) }) else { continue }
        text += "      <\(format) action=\"\(select.text(6) ?? "original")\""
        if let date = dateText(select.int(5)) { text += " hashdate=\"\(date)\"" }
        text += ">\(format.text(select.blob(4) ?? []))</\(format)>\n"
      }
      if last != nil { text += "    </hash>\n" }
      return (text, last)
    }
  }

  /// The elements of the folders after `path`, without that of the list, and the path of the last one; nil: there are no more.
  func folders(after path: BytePath) throws(SQLiteError) -> (String, BytePath?) {
    try table.with { database throws(SQLiteError) in
      let select = try database.statement(
        "SELECT path, content, structure FROM folder WHERE path > ? ORDER BY path LIMIT 200")
      try select.bind(1, path.bytes)
      var text = ""
      var last: BytePath?
      while try select.step() {
        let path = BytePath(select.blob(0) ?? [])
        text += "    <directoryhash>\n      <path>\(path.description.escapedXML)</path>\n"
        text += hashes(select.blob(1), select.blob(2))
        text += "    </directoryhash>\n"
        last = path
      }
      return (text, last)
    }
  }

  /// The hashes of the folder of the list.
  private func root() throws(SQLiteError) -> String {
    try table.with { database throws(SQLiteError) in
      try database.statement("SELECT content, structure FROM folder WHERE path = x''").first { row in
        "    <roothash>\n\(hashes(row.blob(0), row.blob(1)))    </roothash>\n"
      } ?? ""
    }
  }

  private func hashes(_ content: [UInt8]?, _ structure: [UInt8]?) -> String {
    let indent = "      "
    let date = dateText(facts.date).map { " hashdate=\"\($0)\"" } ?? ""
    return [("content", content), ("structure", structure)].map { name, digest in
      "\(indent)<\(name)>\n\(indent)  <\(facts.format)\(date)>\(facts.format.text(digest ?? []))</\(facts.format)>\n"
        + "\(indent)</\(name)>\n"
    }.joined()
  }
}

/// `2026-11-28T02:38:09+00:00`; nil: the year has not four digits. `seconds`: since 1970.
private func dateText(_ seconds: Int64) -> String? {
  let years = -30_610_224_000..<253_402_300_800 as Range<Int64>
  return years.contains(seconds) ? utcText(seconds, "%Y-%m-%dT%H:%M:%S+00:00") : nil
}
