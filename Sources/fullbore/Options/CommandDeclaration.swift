/// Declares the name, the operands and the options of a command, and the text of its `--help`.
struct CommandDeclaration: Sendable {
  let name: String
  /// The name and its operands: `push SOURCE... DESTINATION`.
  let synopsis: String
  let summary: String
  let options: [OptionDeclaration]
  var examples: [Example] = []
  /// Further information for the user.
  var notes = ""
  /// The words among which the first operand is; empty: it is something else.
  var operands: [String] = []
  /// An operand may be a place, such as `nas:`.
  var takesPlaces = false
  /// Options of a similar command that this one does not take, with what to do instead.
  var refused: [String: String] = [:]

  struct Example: Sendable {
    /// The command line after `fullbore `.
    let arguments: String
    let meaning: String

    init(_ arguments: String, _ meaning: String) { (self.arguments, self.meaning) = (arguments, meaning) }
  }

  /// Options under their headings. A heading without options is left out.
  var groups: [(group: OptionGroup, options: [OptionDeclaration])] {
    OptionGroup.allCases.compactMap { group in
      let members = options.filter { $0.group == group }
      return members.isEmpty ? nil : (group, members)
    }
  }

  /// Whether `--help` leaves options out, which `--help-all` lists.
  var hasMore: Bool { options.contains { $0.group != .everyday } }

  func help(_ length: HelpLength) -> String {
    let examples = examples.map { "  fullbore \($0.arguments)\n      \($0.meaning)\n" }.joined()
    let head =
      "fullbore \(synopsis)\n\(summary)\n" + (examples.isEmpty ? "" : "\nExamples:\n\(examples)") + "\nOptions:\n"
    let own: [OptionDeclaration] =
      [.flag("help", short: "h", "this text")]
      + (hasMore ? [.flag("help-all", "all options, and what else there is to know")] : [])
    if length == .short, hasMore { return head + Self.lines(options.filter { $0.group == .everyday } + own) }
    let notes = notes.isEmpty ? "" : "\n\(notes)\n"
    if !hasMore { return head + Self.lines(options + own) + notes }
    let width = Self.width((options + own).map(\.title))
    let groups = groups.map { group, members in
      let members = group == .everyday ? members + own : members
      return (group == .everyday ? "" : "\n\(group.rawValue):\n") + Self.lines(members, width)
    }
    return head + groups.joined() + notes
  }

  private static func lines(_ options: [OptionDeclaration], _ width: Int? = nil) -> String {
    table(options.map { ($0.title, $0.help) }, width)
  }

  /// Two columns. The text of a title that is wider than its column has a line of its own.
  static func table(_ rows: [(title: String, text: String)], _ width: Int? = nil) -> String {
    let width = width ?? Self.width(rows.map(\.title))
    return rows.map { row in
      let isLong = row.title.count > width
      let padding = String(repeating: " ", count: isLong ? width + 2 : width - row.title.count)
      return "  \(row.title)\(isLong ? "\n" : "")\(padding)  \(row.text)\n"
    }.joined()
  }

  /// The width of the column of titles.
  private static func width(_ titles: [String]) -> Int {
    let most = 34
    return titles.map(\.count).filter { $0 <= most }.max() ?? most
  }
}

/// How much `--help` or `--help-all` tells. The raw value is the option's name.
enum HelpLength: String, CaseIterable, Sendable {
  case short = "help"
  case whole = "help-all"
}
