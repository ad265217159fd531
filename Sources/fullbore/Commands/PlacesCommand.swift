import BlobUpload
import Blobs

/// Lists the user's places, adds one, or removes one.
struct PlacesCommand: Command {
  static let declaration = CommandDeclaration(
    name: "places", synopsis: "places [add NAME URL | remove NAME]",
    summary: "destinations with names: list them, add one and test it, remove one",
    options: [
      .flag("json", "of the list: one JSON object a line"),
      .flag("names", "of the list: only the names, one a line, for the completions of a shell"),
      .flag("untested", "add the place without a request to it"),
    ] + Place.settings,
    examples: [
      .init("places add nas http://nas:8080/photos/ --token-file token", "then: fullbore push DCIM/ nas:2026/"),
      .init(
        "places add cloud dav+https://cloud.example/remote.php/dav/files/anna/",
        "asks for the password where the server wants one"),
    ],
    notes: """
      Places are in ~/.config/fullbore/config.toml, or below $XDG_CONFIG_HOME. 'add' writes what is given here and keeps
      everything that is there, also comments; 'remove' takes out the lines from [places.NAME] to its last setting. Every
      option that is listed here may be a setting of a place. A relative path in the file begins at its folder.
      No secret is written into that file: token-file, netrc-file and header = "@FILE" name a file, token-command and
      password-command a command that prints it, like 'pass show nas'. On a terminal 'add' asks for what is missing, and
      keeps a token or password in the keyring where secret-tool is installed, else in a file for you alone.
      The test asks the server what it speaks, and for the folder of the place; it sends no file.
      Credentials of a place are sent to its server only, for what is below its URL and for the URLs that the server gives to
      it: also by 'resume', 'abort', 'status --check' and 'watch', which take them from the place again. A place in S3
      without an endpoint is at Amazon's, whatever AWS_ENDPOINT_URL says.
      """,
    operands: ["add", "remove"])

  /// The options of a place that concern connections, for uploads that the journal knows.
  static let connections = CommandDeclaration(
    name: "places", synopsis: "", summary: "", options: ConnectionOptions.declared + PaceOptions.declared)

  enum Action: Sendable {
    case list
    case add(name: String?, url: BytePath?)
    case remove(String)
  }

  let action: Action
  let isJSON: Bool
  let listsNames: Bool
  let isUntested: Bool
  /// As given, with the settings for a new place.
  let arguments: Arguments

  init(_ arguments: Arguments) throws(UsageError) {
    self.arguments = arguments
    isJSON = arguments.flag("json")
    listsNames = arguments.flag("names")
    isUntested = arguments.flag("untested")
    let operands = arguments.operands
    switch operands.first {
    case nil: action = .list
    case "add" where operands.count <= 3:
      action = .add(
        name: operands.count > 1 ? operands[1].description : nil, url: operands.count > 2 ? operands[2] : nil)
    case "remove" where operands.count == 2: action = .remove(operands[1].description)
    case "add":
      throw UsageError("add: wanted a name and a URL, as in 'fullbore places add nas http://nas:8080/photos/'")
    case "remove": throw UsageError("remove: which one? 'fullbore places' lists them")
    case let word?:
      let hint = closest(to: word.description, among: ["add", "remove"]).map { " Did you mean '\($0)'?" } ?? ""
      throw UsageError("'\(shown(word.withoutSecrets))': wanted add, remove or nothing, which lists the places.\(hint)")
    }
    if case .add = action { return }
    if let option = Place.settings.first(where: { arguments.isGiven($0.name) }) {
      throw UsageError("--\(option.name) is for 'fullbore places add'")
    }
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    do throws(UsageError) {
      switch action {
      case .list where listsNames:
        // The shell shows what is printed in the middle of a line that is being typed, so an error is not said here.
        guard let places = try? Places.load() else { return .usage }
        for place in places.all { Console.output.write("\(place.name):\n") }
        return .ok
      case .list:
        list(try Places.load())
        return .ok
      case .remove(let name):
        let file = try PlacesFile.open()
        try file.remove(name)
        Console.output.write("\(name) is removed from \(shown(file.path)); files that hold its secrets stay.\n")
        return .ok
      case .add(let name, let url): return await add(name, url)
      }
    } catch {
      return refuse(error)
    }
  }

  func refuse(_ error: UsageError) -> ExitStatus {
    Console.error.write("fullbore places: \(shown(error.message))\n")
    return .usage
  }

  private func list(_ places: Places) {
    if isJSON {
      for place in places.all {
        var line = JSONLine("place")
        line.add("name", place.name)
        line.add("url", place.url)
        if let credentials = place.credentials { line.add("credentials", credentials) }
        line.add("settings", place.values.keys.sorted().joined(separator: " "))
        Console.output.write("\(line.text)\n")
      }
      return
    }
    if places.all.isEmpty {
      Console.output.write(
        "There are no places in \(shown(places.file)). 'fullbore places add NAME URL' makes one.\n")
    }
    let width = places.all.map { $0.name.count }.max() ?? 0
    for place in places.all {
      let padding = String(repeating: " ", count: width - place.name.count)
      let facts = [place.credentials, place.seals ? "seals files" : nil].compactMap { $0 }.joined(separator: "; ")
      Console.output.write("\(place.name):\(padding)  \(shown(place.url))\(facts.isEmpty ? "" : "  (\(facts))")\n")
    }
  }
}
