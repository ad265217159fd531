import BlobClient
import Blobs

/// Checks the text of `config.toml`. Every error has the file, the line and the column, and what to do.
struct PlacesReader {
  private let file: BytePath
  private let bytes: [UInt8]

  init(_ file: BytePath, _ bytes: [UInt8]) { (self.file, self.bytes) = (file, bytes) }

  func places() throws(UsageError) -> [Place] {
    var places: [Place] = []
    for table in try document().tables {
      guard let place = try place(table) else { continue }
      if let other = places.first(where: place.canBeMistaken) {
        let url = table.entries.first { $0.key == "url" }
        throw refusal(url?.valuePosition ?? table.position, Self.sameURL(place, other))
      }
      places.append(place)
    }
    return places
  }

  /// The message for two places that the journal cannot tell apart.
  static func sameURL(_ place: Place, _ other: Place) -> String {
    "the places '\(other.name)' and '\(place.name)' have the same URL and other credentials, so what was sent to one would "
      + "count as sent to the other: give each of them account = \"NAME\", a name for whose files are there"
  }

  func document() throws(UsageError) -> TOMLDocument {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw UsageError("\(shown(file)): this is not UTF-8")
    }
    do throws(TOMLError) { return try TOMLDocument(text) } catch { throw refusal(error.position, error.message) }
  }

  /// nil: the table has no place in it.
  private func place(_ table: TOMLDocument.Table) throws(UsageError) -> Place? {
    if table.name.isEmpty || table.name == ["places"] {
      guard let first = table.entries.first else { return nil }
      throw refusal(first.keyPosition, "'\(first.key)' belongs to no place: write it below a line [places.NAME]")
    }
    guard table.name.count == 2, table.name[0] == "places" else {
      throw refusal(
        table.position, "there is no table [\(table.name.joined(separator: "."))]: a place begins with [places.NAME]")
    }
    let name = table.name[1]
    if !Place.isName(name) {
      throw refusal(table.position, "a place is called by letters, digits, - and _, 64 at most")
    }
    if Place.reserved.contains(name.lowercased()) {
      throw refusal(table.position, "'\(name):' begins a URL: give the place another name")
    }
    guard let url = table.entries.first(where: { $0.key == "url" }) else {
      throw refusal(table.position, "the place '\(name)' has no url: write url = \"http://host/path/\"")
    }
    var place = Place(name: name, url: try checkedURL(url))
    for entry in table.entries where entry.key != "url" {
      place.positions[entry.key] = location(entry.valuePosition)
      if let values = try values(of: entry) { place.values[entry.key] = values }
    }
    try check(place, table)
    do throws(UsageError) { try PushOptions.checkValues(of: place) } catch {
      throw error.located(place.positions) ?? refusal(table.position, error.message)
    }
    return place
  }

  private func checkedURL(_ entry: TOMLDocument.Entry) throws(UsageError) -> String {
    guard case .string(let url) = entry.value else {
      throw refusal(entry.valuePosition, "url: wanted text in quotes")
    }
    let wanted = url.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
    guard wanted, url.contains("://") else {
      throw refusal(entry.valuePosition, "url: wanted http://host/path/, s3://bucket/folder/ or gs://bucket/folder/")
    }
    if url.contains("?") {
      throw refusal(
        entry.valuePosition,
        "url: the query of a URL may be a secret, and none is written here: give that URL to the command")
    }
    do throws(UsageError) {
      // The settings of S3 are read only when the place is used.
      if url.lowercased().hasPrefix("s3://") {
        _ = try Destination.s3(Array(url.utf8.dropFirst("s3://".utf8.count))[...], "url")
      } else {
        _ = try Destination(BytePath(url))
      }
    } catch {
      throw refusal(entry.valuePosition, error.message)
    }
    return url
  }

  /// The value as the command line would have it; nil: a flag that is not set.
  private func values(of entry: TOMLDocument.Entry) throws(UsageError) -> [BytePath]? {
    guard let option = Place.settings.first(where: { $0.name == entry.key }) else { throw unknown(entry) }
    guard option.value != nil else {
      guard case .boolean(let isSet) = entry.value else {
        throw refusal(entry.valuePosition, "\(entry.key): wanted true or false")
      }
      return isSet ? [] : nil
    }
    var values = [entry.value]
    if case .array(let several) = entry.value {
      if !option.isRepeatable { throw refusal(entry.valuePosition, "\(entry.key): wanted one value, and no array") }
      values = several
    }
    var result: [BytePath] = []
    for value in values {
      switch value {
      case .string(let text): result.append(try checked(text, option, entry))
      case .integer(let number): result.append(try checked("\(number)", option, entry))
      case .boolean, .array: throw refusal(entry.valuePosition, "\(entry.key): wanted text in quotes, or a number")
      }
    }
    return result.isEmpty ? nil : result
  }

  private func checked(
    _ text: String, _ option: OptionDeclaration, _ entry: TOMLDocument.Entry
  ) throws(UsageError) -> BytePath {
    if text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) {
      throw refusal(entry.valuePosition, "\(entry.key): a control character in the text")
    }
    if option.name == "on-conflict", text == NameConflict.overwrite.rawValue {
      throw refusal(entry.valuePosition, "on-conflict: overwrite loses files, so it is given to each command")
    }
    let isFile = text.hasPrefix("@")
    if option.name == "proxy", !isFile, Proxy(text)?.hasCredentials == true {
      throw refusal(
        entry.valuePosition,
        "proxy: no password is written here: put the URL into a file, and write proxy = \"@FILE\"")
    }
    if option.name == "header" || option.name == "form", !isFile {
      throw refusal(
        entry.valuePosition,
        "\(entry.key): it may be a secret, and none is written here: put it into a file, and write "
          + "\(entry.key) = \"@FILE\"")
    }
    if isFile, option.mayNameFile { return BytePath([UInt8(ascii: "@")] + path(String(text.dropFirst())).bytes) }
    return option.namesFile ? path(text) : BytePath(text)
  }

  /// A path in the file begins at the folder of the file, and `~/` is the home folder.
  private func path(_ text: String) -> BytePath {
    if text.hasPrefix("~/"), let home = environment("HOME") {
      return home.appending(BytePath(String(text.dropFirst(2))))
    }
    let path = BytePath(text)
    return path.isAbsolute ? path : file.folder.appending(path)
  }

  private func unknown(_ entry: TOMLDocument.Entry) -> UsageError {
    let key = shown(entry.key)
    if ["token", "password", "secret", "key", "passwd"].contains(entry.key.lowercased()) {
      return refusal(
        entry.keyPosition,
        "'\(key)': no secret is written here: token-file = \"FILE\" names a file with it, and "
          + "token-command or password-command = \"COMMAND\" a command that prints it")
    }
    if (WatchOptions.declared + PushCommand.declaration.options).contains(where: { $0.name == entry.key }) {
      return refusal(entry.keyPosition, "'\(key)' is for one push, and not for a place: give --\(key) to the command")
    }
    let hint =
      closest(to: entry.key, among: ["url"] + Place.settings.map(\.name)).map { " Did you mean '\($0)'?" } ?? ""
    return refusal(entry.keyPosition, "there is no setting '\(key)'.\(hint)")
  }

  /// Checks what concerns several settings.
  private func check(_ place: Place, _ table: TOMLDocument.Table) throws(UsageError) {
    func position(_ key: String) -> TOMLDocument.Position {
      table.entries.first { $0.key == key }?.keyPosition ?? table.position
    }
    let (user, password) = (place.values["user"], place.values["password-command"])
    if user != nil, password == nil {
      throw refusal(
        position("user"),
        "user: the password is wanted too: password-command = \"COMMAND\" prints it; or leave both out, and "
          + "write netrc-file = \"FILE\"")
    }
    if user?.contains(where: { $0.bytes.contains(UInt8(ascii: ":")) }) == true {
      throw refusal(position("user"), "user: a colon would end the name there, and begin the password (RFC 7617)")
    }
    if user == nil, password != nil {
      throw refusal(position("password-command"), "password-command: user is wanted too")
    }
    let ways = [["token-file"], ["token-command"], ["user"], ["netrc", "netrc-file"]].filter { way in
      way.contains { place.values[$0] != nil }
    }
    if ways.count > 1 {
      let second = ways[1].first { place.values[$0] != nil } ?? ""
      throw refusal(position(second), "\(second): there is \(ways[0][0]) too: which of the two?")
    }
  }

  private func location(_ position: TOMLDocument.Position) -> String {
    "\(shown(file)):\(position.line):\(position.column)"
  }

  private func refusal(_ position: TOMLDocument.Position, _ message: String) -> UsageError {
    UsageError("\(location(position)): \(message)")
  }
}
