import Blobs
import Platform

/// `config.toml` while a place is added or removed. No other process of this program changes it meanwhile.
final class PlacesFile: Sendable {
  /// The file itself, where `config.toml` is a symbolic link.
  let path: BytePath
  private let folder: Int32
  private let bytes: [UInt8]
  private let places: Places

  /// Waits for other processes that change the file, and makes its folder if it is missing.
  static func open() throws(UsageError) -> PlacesFile {
    let named = try Places.path()
    named.makeFolders()
    let path = target(of: named)
    let folder = path.folder
    let descriptor = folder.withCString { Platform.open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else {
      let reason = String(cString: strerror(errno))
      if descriptor >= 0 { close(descriptor) }
      throw UsageError("\(shown(folder)): \(reason)")
    }
    do throws(UsageError) {
      let bytes = try OwnFile.bytes(of: named) ?? []
      return PlacesFile(path, descriptor, bytes, try Places(named, bytes))
    } catch {
      close(descriptor)
      throw error
    }
  }

  /// The file itself, which may not exist: a link can be made before its file.
  private static func target(of named: BytePath) -> BytePath {
    if let real = named.resolved() { return real }
    var path = named
    // As many links as the system follows.
    for _ in 0..<40 { if let next = path.linkTarget() { path = next } }
    return path
  }

  private init(_ path: BytePath, _ folder: Int32, _ bytes: [UInt8], _ places: Places) {
    (self.path, self.folder, self.bytes, self.places) = (path, folder, bytes, places)
  }

  deinit { close(folder) }

  /// The new place, checked as it would be read from the file. Throws if there is one of its name.
  func checked(adding text: PlaceText) throws(UsageError) -> Place { try checked(adding: text, to: places) }

  private func checked(adding text: PlaceText, to places: Places) throws(UsageError) -> Place {
    if !Place.isName(text.name) {
      throw UsageError("'\(shown(text.name))': a place is called by letters, digits, - and _, 64 at most")
    }
    if places.all.contains(where: { $0.name == text.name }) {
      throw UsageError(
        "there is a place '\(text.name)' already: 'fullbore places remove \(text.name)', or change it in \(shown(path))"
      )
    }
    // A mistake is on the command line, and has no line in a file.
    do throws(UsageError) {
      let place = try PlacesReader("", Array(text.text.utf8)).places()[0]
      _ = try WatchOptions(Self.arguments(place))
      if let other = places.all.first(where: place.canBeMistaken) {
        throw UsageError(PlacesReader.sameURL(place, other))
      }
      return place
    } catch {
      throw UsageError(Self.withoutLine(error.message))
    }
  }

  /// A command that uses every setting of the place.
  private static func arguments(_ place: Place) throws(UsageError) -> Arguments {
    var arguments = try Arguments(["/", ""], WatchCommand.declaration)
    arguments.use(place, as: try place.destination(of: ""))
    return arguments
  }

  private static func withoutLine(_ message: String) -> String {
    guard message.hasPrefix(":"), let space = message.firstIndex(of: " ") else { return message }
    return String(message[message.index(after: space)...])
  }

  func add(_ text: PlaceText) throws(UsageError) {
    // The user may have changed the file while they were asked and the server was tested.
    var new = try OwnFile.bytes(of: path) ?? []
    _ = try checked(adding: text, to: try Places(path, new))
    if let last = new.last {
      if last != UInt8(ascii: "\n") { new.append(UInt8(ascii: "\n")) }
      new.append(UInt8(ascii: "\n"))
    }
    try write(new + Array(text.text.utf8))
  }

  /// Removes the lines from the name of the place to its last setting.
  func remove(_ name: String) throws(UsageError) {
    _ = try places.named(name)
    guard let table = try PlacesReader(path, bytes).document().tables.first(where: { $0.name == ["places", name] })
    else {
      return
    }
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let last = min(table.lastLine, lines.count)
    lines.removeSubrange((table.position.line - 1)..<last)
    // The empty line that `add` has put before the place.
    let before = table.position.line - 2
    if lines.indices.contains(before), lines[before].isEmpty, before + 1 >= lines.count || lines[before + 1].isEmpty {
      lines.remove(at: before)
    }
    try write(Array(lines.joined(separator: [UInt8(ascii: "\n")])))
  }

  private func write(_ new: [UInt8]) throws(UsageError) { try Self.write(new, to: path) }

  /// Writes a file that only this user can read, and that other programs see as a whole or not at all.
  static func write(_ new: [UInt8], to path: BytePath) throws(UsageError) {
    var template = (path.bytes + Array(".XXXXXX".utf8)).map { CChar(bitPattern: $0) } + [0]
    // The system makes it readable for this user only.
    let descriptor = mkstemp(&template)
    let failure = { UsageError("\(shown(path)): \(String(cString: strerror(errno)))") }
    guard descriptor >= 0 else { throw failure() }
    var start = 0
    while start < new.count {
      let count = new.withUnsafeBytes { Platform.write(descriptor, $0.baseAddress! + start, $0.count - start) }
      if count > 0 { start += count } else if errno != EINTR { break }
    }
    let isWhole = start == new.count && fsync(descriptor) == 0
    let error = isWhole ? nil : failure()
    close(descriptor)
    if let error {
      unlink(template)
      throw error
    }
    if path.withCString({ rename(template, $0) }) != 0 {
      let error = failure()
      unlink(template)
      throw error
    }
  }
}
