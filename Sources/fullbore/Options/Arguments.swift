import Blobs

/// The command line is invalid, and nothing was done. Exit status 2.
struct UsageError: Error, Sendable, CustomStringConvertible {
  let message: String
  init(_ message: String) { self.message = message }
  var description: String { message }
}

extension UsageError {
  /// The error with the position of the option that it begins with; nil: it begins with none of them. `positions`:
  /// `FILE:LINE:COLUMN` of options, by their names.
  func located(_ positions: [String: String]) -> UsageError? {
    if positions.values.contains(where: message.hasPrefix) { return self }
    let name = message.dropFirst(2).prefix { $0.isLetter || $0.isNumber || $0 == "-" }
    guard message.hasPrefix("--"), let position = positions[String(name)] else { return nil }
    return UsageError("\(position): \(message.dropFirst(2))")
  }
}

/// Arguments, divided into options and operands, as bytes.
///
/// `--name value`, `--name=value`, `-n`, `-j 4`, `-j4`, `-nv`; `--` ends the options; `-` alone is an operand.
struct Arguments: Sendable {
  /// Arguments that are not options, in order.
  private(set) var operands: [BytePath] = []
  private(set) var wantsHelp: HelpLength?
  /// Whether the command only reads its arguments, with all values, and does not run.
  private(set) var isOnlyRead = false
  /// The place whose credentials these are; nil: they are given, or there are none.
  private(set) var placeOfCredentials: String?
  /// The place in S3 that is the destination; nil: there is none.
  private(set) var placeInS3: S3Options.PlaceInS3?
  /// The destination as the user wrote it, if a place is in it.
  private(set) var destinationWithPlace: BytePath?
  /// Whether the arguments are for a further destination of a command, which `--also` names.
  private(set) var isFurther = false
  /// Options whose values come from a place.
  private var namesFromPlace: Set<String> = []
  /// Notices for the user about the use of a place.
  private(set) var notices: [String] = []
  private var values: [String: [BytePath]] = [:]
  private let declaration: CommandDeclaration
  /// Where the values stand that come from a place: `FILE:LINE:COLUMN`.
  private var positions: [String: String] = [:]

  init(_ arguments: [BytePath], _ declaration: CommandDeclaration) throws(UsageError) {
    self.declaration = declaration
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == "--" {
        operands += rest
        break
      } else if argument.bytes.starts(with: "--".utf8) {
        try takeLong(argument, &rest)
      } else if argument.bytes.count > 1 && argument.bytes[0] == dash {
        try takeShort(argument, &rest)
      } else {
        operands.append(argument)
      }
    }
  }

  /// The settings of a place, as if they had been given to a command.
  init(_ place: Place, _ declaration: CommandDeclaration) {
    self.declaration = declaration
    use(place)
  }

  /// Takes the place's value for each option that is not given. Credentials are taken together: where any is given, the
  /// place's are not used. `destination`: replaces the last operand.
  mutating func use(_ place: Place, as destination: BytePath? = nil) {
    if let destination, let last = operands.last {
      destinationWithPlace = last
      operands[operands.count - 1] = destination
    }
    let hasCredentials = Place.credentials.contains { values[$0] != nil }
    let hasOtherServer = values["endpoint"].map { $0 != place.values["endpoint"] } == true
    if hasOtherServer {
      let unused = Place.ofServer.filter { values[$0] == nil && place.values[$0] != nil }.sorted()
      if !unused.isEmpty {
        notices.append(
          "--endpoint is another server than that of the place '\(place.name)', which gets nothing of its "
            + unused.joined(separator: ", "))
      }
    }
    if place.bucket != nil {
      placeInS3 = .init(
        name: place.name, namesProfile: values["profile"] == nil && place.values["profile"] != nil)
    }
    for (name, value) in place.values where values[name] == nil {
      if hasOtherServer && Place.ofServer.contains(name) || name == "on-conflict" && values["overwrite"] != nil {
        continue
      }
      if Place.credentials.contains(name) {
        if hasCredentials { continue }
        placeOfCredentials = place.name
      }
      values[name] = value
      namesFromPlace.insert(name)
      positions[name] = place.positions[name]
    }
  }

  /// The arguments for a further destination. Values of a place are left out, and so are options for one server only:
  /// that belongs to the destination that is the last operand. A netrc file names the servers itself, so it is for both.
  func further(_ destination: BytePath) throws(UsageError) -> Arguments {
    var result = self
    for name in namesFromPlace { result.values[name] = nil }
    let netrc = result.values.filter { ["netrc", "netrc-file"].contains($0.key) }
    let ofServer = Place.ofServer.union(
      (S3Options.declared + S3Options.objectDeclared + FormOptions.declared).map(\.name))
    for name in ofServer.union(["also"]) { result.values[name] = nil }
    (result.placeOfCredentials, result.placeInS3, result.notices) = (nil, nil, [])
    (result.namesFromPlace, result.positions, result.destinationWithPlace) = ([], [:], nil)
    if !operands.isEmpty { result.operands[operands.count - 1] = destination }
    result.isFurther = true
    result = try result.withPlace()
    let isS3 = result.operands.last?.hasScheme("s3") == true
    if !isS3, !Place.credentials.contains(where: { result.values[$0] != nil }) { result.values.merge(netrc) { $1 } }
    return result
  }

  /// Whether the value was given to the command, and is not that of a place.
  func isTyped(_ name: String) -> Bool { values[name] != nil && !namesFromPlace.contains(name) }

  /// Whether both have the same values for an option.
  func agrees(with other: Arguments, on name: String) -> Bool { values[name] == other.values[name] }

  func flag(_ name: String) -> Bool { values[declared(name)] != nil }

  /// Whether the option was given, or a place has it.
  func isGiven(_ name: String) -> Bool { values[declared(name)] != nil }

  /// The last value of the option; nil if the option was not given.
  func value(_ name: String) -> BytePath? { values[declared(name)]?.last }

  func all(_ name: String) -> [BytePath] { values[declared(name)] ?? [] }

  func text(_ name: String) throws(UsageError) -> String? {
    guard let value = value(name) else { return nil }
    guard let text = String(validating: value.bytes, as: UTF8.self) else {
      throw UsageError("\(title(name)) '\(shown(value))': this is not UTF-8")
    }
    return text
  }

  /// The value, parsed by `parse`. `wanted` completes "wanted …" in the error message.
  func parsed<Value>(_ name: String, wanted: String, _ parse: (String) -> Value?) throws(UsageError) -> Value? {
    guard let text = try text(name) else { return nil }
    guard let value = parse(text) else {
      throw UsageError("\(title(name)) '\(shown(BytePath(text).withoutSecrets))': wanted \(wanted)")
    }
    return value
  }

  func count(_ name: String, _ range: ClosedRange<Int>) throws(UsageError) -> Int? {
    try parsed(name, wanted: "a number from \(range.lowerBound) to \(range.upperBound)") { text in
      Int(text).flatMap { range.contains($0) ? $0 : nil }
    }
  }

  /// The option in a message: `--jobs`, or `FILE:LINE:COLUMN: jobs`.
  private func title(_ name: String) -> String { positions[name].map { "\($0): \(name)" } ?? "--\(name)" }

  /// Runs `body`. An error that begins with an option whose value comes from a place has the position of that value.
  func locating<Value>(_ body: () throws(UsageError) -> Value) throws(UsageError) -> Value {
    do throws(UsageError) { return try body() } catch { throw error.located(positions) ?? error }
  }

  /// Whether the command has an option of this name.
  func declares(_ name: String) -> Bool { declaration.options.contains { $0.name == name } }

  /// Commands of places may be used by every command, and are declared only by the one that writes them.
  private func declared(_ name: String) -> String {
    let known = declaration.options + SecretCommand.declared
    precondition(known.contains { $0.name == name }, "\(declaration.name) declares no --\(name)")
    return name
  }

  private mutating func takeLong(_ argument: BytePath, _ rest: inout ArraySlice<BytePath>) throws(UsageError) {
    let body = argument.bytes.dropFirst(2)
    let name = String(decoding: body.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
    let inline = body.firstIndex(of: UInt8(ascii: "=")).map { BytePath(body[($0 + 1)...]) }
    if let length = HelpLength(rawValue: name) { return wantsHelp = length }
    // The tests of the documentation use this option. No help and no completion has it, as it does nothing for a user.
    if name == "read-arguments-only" { return isOnlyRead = true }
    guard let option = declaration.options.first(where: { $0.name == name }) else {
      if let reason = declaration.refused[name] { throw UsageError("--\(name): \(reason)") }
      let known = declaration.options.map(\.name) + HelpLength.allCases.map(\.rawValue)
      let hint = closest(to: name, among: known).map { " Did you mean '--\($0)'?" } ?? ""
      throw UsageError("there is no option '--\(shown(BytePath(name)))'.\(hint)")
    }
    if inline != nil && option.value == nil { throw UsageError("--\(name) takes no value") }
    try take(option, as: "--\(name)", inline, &rest)
  }

  private mutating func takeShort(_ argument: BytePath, _ rest: inout ArraySlice<BytePath>) throws(UsageError) {
    var letters = argument.bytes.dropFirst()
    while let letter = letters.popFirst() {
      let character = Character(Unicode.Scalar(letter))
      if character == "h" { return wantsHelp = .short }
      guard let option = declaration.options.first(where: { $0.short == character }) else {
        throw UsageError(
          "there is no option '\(shown(argument))'; put '--' before names that begin with a dash")
      }
      if option.value == nil {
        try take(option, as: "-\(character)", nil, &rest)
      } else {
        let inline = letters.isEmpty ? nil : BytePath(letters)
        return try take(option, as: "-\(character)", inline, &rest)
      }
    }
  }

  private mutating func take(
    _ option: OptionDeclaration, as given: String, _ inline: BytePath?, _ rest: inout ArraySlice<BytePath>
  ) throws(UsageError) {
    guard let placeholder = option.value else {
      values[option.name] = []
      return
    }
    guard let value = inline ?? rest.popFirst() else {
      throw UsageError("\(given) needs a value: \(given) \(placeholder)")
    }
    values[option.name, default: []].append(value)
  }
}

private let dash = UInt8(ascii: "-")

/// The known word that the user probably meant: at most two edits away, or one that starts with `word`.
func closest(to word: String, among known: [String]) -> String? {
  if word.isEmpty { return nil }
  let word = word.lowercased()
  let slips = known.map { (name: $0, slips: distance(Array(word.utf8), Array($0.lowercased().utf8))) }
  let best = slips.min { $0.slips < $1.slips }
  // Two slips in a short word lead to a word that was not meant, unless it begins in the same way.
  if let best, best.slips <= (best.name.lowercased().first == word.first || word.utf8.count > 5 ? 2 : 1),
    best.slips < word.utf8.count
  {
    return best.name
  }
  return known.first { $0.lowercased().hasPrefix(word) }
}

/// The Levenshtein distance: the number of insertions, deletions and replacements between the two words.
private func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
  var row = Array(0...b.count)
  for i in a.indices {
    var diagonal = row[0]
    row[0] = i + 1
    for j in b.indices {
      let replaced = diagonal + (a[i] == b[j] ? 0 : 1)
      diagonal = row[j + 1]
      row[j + 1] = min(replaced, row[j] + 1, diagonal + 1)
    }
  }
  return row[b.count]
}
