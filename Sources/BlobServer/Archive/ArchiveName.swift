import Blobs

/// Names in archives. Whoever may send files chooses their names, and an archive is unpacked on any system: no name may
/// lead out of the folder, replace another file, or mean something else than a file there.
enum ArchiveName {
  /// The names of the files and folders of one folder, in the same order. Two names that a file system takes for the same,
  /// because it ignores case or the form of accents, get numbers: `a (2).jpg`.
  static func names(for siblings: [BytePath]) -> [String] {
    var names = siblings.map { safe($0.bytes) }
    let isChanged = zip(names, siblings).map { !$0.utf8.elementsEqual($1.bytes) }
    var taken: Set<String> = []
    // A million names may have become the same one, so the search for a free number goes on where the last one ended.
    var numbers: [String: Int] = [:]
    // Names that stay as they are come first, whatever other names have become.
    for index in names.indices.filter({ !isChanged[$0] }) + names.indices.filter({ isChanged[$0] }) {
      let wanted = names[index]
      let key = wanted.lowercased()
      if taken.insert(key).inserted { continue }
      var number = numbers[key] ?? 2
      repeat {
        names[index] = numbered(wanted, number)
        number += 1
      } while !taken.insert(names[index].lowercased()).inserted
      numbers[key] = number
    }
    return names
  }

  /// The name of one file, with underscores for what some system does not take literally.
  static func safe(_ name: some Sequence<UInt8>) -> String {
    var scalars: [Unicode.Scalar] = String(decoding: Array(name), as: UTF8.self).unicodeScalars.map {
      isSafe($0) ? $0 : "_"
    }
    // Windows drops dots and spaces at the end: a name of `.. ` would be the parent folder.
    for index in scalars.indices.reversed() {
      if scalars[index] != "." && scalars[index] != " " { break }
      scalars[index] = "_"
    }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars)
    let safe = String(text)
    return isDevice(safe) ? "_" + safe : safe.isEmpty ? "_" : safe
  }

  private static func isSafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    // Backslash and colon separate components on Windows. U+FFFD stands for bytes that are not UTF-8.
    case "/", "\\", ":", "*", "?", "\"", "<", ">", "|", "\u{FFFD}": return false
    default: break
    }
    switch scalar.properties.generalCategory {
    // Format characters such as U+202E change the order in which a name is shown.
    case .control, .lineSeparator, .paragraphSeparator: return false
    case .format: return scalar == "\u{200C}" || scalar == "\u{200D}"  // within words and emoji
    default: return true
    }
  }

  /// Whether Windows takes the name for a device, with any ending.
  private static func isDevice(_ name: String) -> Bool {
    let stem = name.prefix { $0 != "." }.uppercased()
    let trimmed = String(stem.reversed().drop { $0 == " " }.reversed())
    if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(trimmed) { return true }
    guard trimmed.count == 4, trimmed.hasPrefix("COM") || trimmed.hasPrefix("LPT") else { return false }
    return "0123456789\u{B9}\u{B2}\u{B3}".contains(trimmed.last!)
  }

  /// `a.jpg` becomes `a (2).jpg`, at most 255 bytes long.
  private static func numbered(_ name: String, _ number: Int) -> String {
    let dot = name.lastIndex(of: ".").flatMap { $0 > name.startIndex ? $0 : nil } ?? name.endIndex
    let end = " (\(number))" + name[dot...].prefix(100)
    var stem = name[..<dot]
    while stem.utf8.count + end.utf8.count > 255, !stem.isEmpty { stem.removeLast() }
    return stem + end
  }
}
