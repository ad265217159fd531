/// Declares an option. The parser, `--help`, the manual page and the completions of shells are made from it.
struct OptionDeclaration: Sendable {
  /// The name without dashes.
  let name: String
  let short: Character?
  /// Placeholder for the value in `--help`, or the only values, as in `common|json`; nil: the option takes no value.
  let value: String?
  let help: String
  /// Whether all values count if the option is given several times; otherwise only the last one counts.
  var isRepeatable = false
  var group = OptionGroup.everyday

  static func flag(_ name: String, short: Character? = nil, _ help: String) -> OptionDeclaration {
    OptionDeclaration(name: name, short: short, value: nil, help: help)
  }

  static func value(
    _ name: String, _ value: String, short: Character? = nil, isRepeatable: Bool = false, _ help: String
  ) -> OptionDeclaration {
    OptionDeclaration(name: name, short: short, value: value, help: help, isRepeatable: isRepeatable)
  }

  /// The values among which to choose; empty: there are others.
  var choices: [String] {
    guard let value, value.contains("|") || value == value.lowercased() else { return [] }
    return value.split(separator: "|").map(String.init)
  }

  /// Whether its value is a path of this machine.
  var namesFile: Bool { value == "FILE" || value == "FOLDER" || name == "on-upload" }

  /// Whether its value may be `@` and the path of a file that has the value.
  var mayNameFile: Bool { ["header", "form", "proxy"].contains(name) }

  /// The option as shown in `--help`: `-j, --jobs N`.
  var title: String { (short.map { "-\($0), " } ?? "    ") + "--\(name)" + (value.map { " \($0)" } ?? "") }
}

/// The heading under which `--help-all` and the manual list an option, in this order.
enum OptionGroup: String, CaseIterable, Sendable {
  /// What most people need; `--help` lists only these.
  case everyday = "Everyday"
  case choice = "What is sent, and how it is called"
  case checks = "Checks"
  case sealing = "Sealing (age)"
  case pace = "Speed"
  case credentials = "Credentials and certificates"
  case network = "Network"
  case pipes = "Standard input"
  case forms = "Forms (form+http://, form+https://)"
  case s3 = "S3 (s3://)"
  case limits = "Limits"
  case access = "Who may do what"
  case monitoring = "Monitoring"
  case output = "Output and journal"
  case unused = "Taken from the command line of a push, without effect here"
}

extension [OptionDeclaration] {
  /// The same options, under a heading of `--help-all`.
  func inGroup(_ group: OptionGroup) -> Self {
    map { option in
      var option = option
      option.group = group
      return option
    }
  }
}
