import Blobs

/// All places of the user, as `config.toml` has them.
struct Places: Sendable {
  let file: BytePath
  let all: [Place]

  /// The path of the file, which may not exist. XDG Base Directory Specification 0.8.
  static func path() throws(UsageError) -> BytePath {
    if let folder = environment("XDG_CONFIG_HOME"), folder.isAbsolute {
      return folder.appending("fullbore/config.toml")
    }
    guard let home = environment("HOME"), home.isAbsolute else {
      throw UsageError("there is no home folder, and so no file of places: set HOME or XDG_CONFIG_HOME")
    }
    return home.appending(".config/fullbore/config.toml")
  }

  /// Reads the file. Without a file, or a home folder, there are no places.
  static func load(_ path: BytePath? = try? path()) throws(UsageError) -> Places {
    guard let path else { return Places(file: "", all: []) }
    return try Places(path, try OwnFile.bytes(of: path) ?? [])
  }

  /// The places in the text of the file.
  init(_ file: BytePath, _ bytes: [UInt8]) throws(UsageError) {
    self.init(file: file, all: try PlacesReader(file, bytes).places())
  }

  init(file: BytePath, all: [Place]) { (self.file, self.all) = (file, all) }

  /// Throws if there is none with this name; the error has the nearest one.
  func named(_ name: String) throws(UsageError) -> Place {
    if let place = all.first(where: { $0.name == name }) { return place }
    let hint = closest(to: name, among: all.map(\.name)).map { " Did you mean '\($0):'?" } ?? ""
    throw UsageError(
      "there is no place called '\(name)'.\(hint) "
        + (all.isEmpty ? "'fullbore places add \(name) URL' makes it" : "'fullbore places' lists what there is")
        + "; a URL begins like https://")
  }
}

extension Places {
  /// The place in `nas:2026/`, and the URL for that; nil: the destination is written without a place, as all URLs are.
  static func destination(_ given: BytePath) throws(UsageError) -> (Place, url: BytePath)? {
    if given.bytes.firstRange(of: Array("://".utf8)) != nil { return nil }
    let text = given.bytes.prefix { $0 != UInt8(ascii: ":") }
    let name = String(decoding: text, as: UTF8.self)
    guard Place.isName(name), !Place.reserved.contains(name.lowercased()) else { return nil }
    if text.count == given.bytes.count {
      // Without a colon it is no place; a file that cannot be read says nothing about it.
      guard (try? load())?.all.contains(where: { $0.name == name }) == true else { return nil }
      throw UsageError("destination '\(name)': a place is written with a colon: '\(name):'")
    }
    let place = try load().named(name)
    return (place, try place.destination(of: BytePath(given.bytes.dropFirst(text.count + 1))))
  }
}

extension Arguments {
  /// These arguments, with the place that the last operand names: its URL in place of its name, and its values for the
  /// options that are not given. Without a place they stay as they are.
  func withPlace() throws(UsageError) -> Arguments {
    guard let last = operands.last, let (place, url) = try Places.destination(last) else { return self }
    var result = self
    result.use(place, as: url)
    return result
  }
}
