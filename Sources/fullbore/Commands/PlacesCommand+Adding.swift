import BlobUpload
import Blobs
import Platform

extension PlacesCommand {
  /// Adds a place, asks on a terminal for what is missing, and tests it before it is written.
  func add(_ givenName: String?, _ givenURL: BytePath?) async -> ExitStatus {
    let prompt = Prompt()
    var made: [BytePath] = []
    do throws(UsageError) {
      let file = try PlacesFile.open()
      guard let name = givenName ?? prompt?.ask("Name of the place, like nas: "),
        let url = givenURL?.description ?? prompt?.ask("Its URL, like http://nas:8080/photos/: ")
      else {
        throw UsageError("add: wanted a name and a URL, as in 'fullbore places add nas http://nas:8080/photos/'")
      }
      var text = PlaceText(name, url)
      try text.add(arguments)
      if url.lowercased().hasPrefix("s3:"), !arguments.isGiven("endpoint"),
        let endpoint = S3Access.endpoint(forNewPlaceWith: try arguments.text("profile"))
      {
        text.lines.append(PlaceText.line("endpoint", endpoint))
        Console.output.write("The settings of AWS lead to \(shown(endpoint)), which becomes the place's endpoint.\n")
      }
      var place = try file.checked(adding: text)
      if !isUntested {
        while true {
          switch await PlaceTest(place).run() {
          case .speaks(let answer):
            Console.output.write("\(shown(place.url)) answers\(answer)\n")
          case .wantsCredentials(let message):
            Console.error.write("\(shown(message))\n")
            guard let prompt, !place.hasCredentials,
              let lines = try CredentialPrompt(prompt, place, file.path).ask(&made)
            else { return failed("the credentials of '\(name)' are missing or wrong", made) }
            text.lines += lines
            place = try file.checked(adding: text)
            continue
          case .failed(let message, let status):
            Console.error.write("\(shown(message))\n")
            return failed("'\(name)' cannot be used", made, status)
          }
          break
        }
      }
      try file.add(text)
      Console.output.write(
        "\(name) is added to \(shown(file.path)). 'fullbore push FOLDER \(name):' sends there.\n")
      return .ok
    } catch {
      Self.remove(made)
      return refuse(error)
    }
  }

  private func failed(_ what: String, _ made: [BytePath], _ status: ExitStatus = .unreachable) -> ExitStatus {
    Self.remove(made)
    Console.error.write("fullbore places: \(what): nothing was written; --untested adds it all the same\n")
    return status
  }

  /// Removes files with secrets that belong to no place.
  private static func remove(_ files: [BytePath]) { for file in files { _ = file.withCString { unlink($0) } } }
}

/// The lines of a new place in `config.toml`.
struct PlaceText: Sendable {
  let name: String
  var lines: [String]

  init(_ name: String, _ url: String) {
    self.name = name
    lines = [Self.line("url", url)]
  }

  var text: String { "[places.\(name)]\n" + lines.map { $0 + "\n" }.joined() }

  /// Adds the settings that the user has given to the command.
  mutating func add(_ arguments: Arguments) throws(UsageError) {
    for option in Place.settings where arguments.isGiven(option.name) {
      if option.value == nil {
        lines.append("\(option.name) = true")
        continue
      }
      var values: [String] = []
      for value in option.isRepeatable ? arguments.all(option.name) : arguments.value(option.name).map({ [$0] }) ?? [] {
        let isFile = option.mayNameFile && value.bytes.first == UInt8(ascii: "@")
        let absolute =
          isFile
          ? BytePath([UInt8(ascii: "@")] + BytePath(value.bytes.dropFirst()).absolute().bytes)
          : option.namesFile ? value.absolute() : value
        guard absolute.isUTF8 else { throw UsageError("--\(option.name) '\(shown(value))': this is not UTF-8") }
        values.append(absolute.description)
      }
      lines.append(
        values.count == 1
          ? Self.line(option.name, values[0])
          : "\(option.name) = [\(values.map(Self.quoted).joined(separator: ", "))]")
    }
  }

  static func line(_ key: String, _ value: String) -> String { "\(key) = \(quoted(value))" }

  /// A basic string of TOML.
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
