/// The amount and the format of output.
struct OutputOptions: Sendable, Hashable {
  var isJSON = false
  var isQuiet = false
  var isVerbose = false

  init(isJSON: Bool = false, isQuiet: Bool = false, isVerbose: Bool = false) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
  }

  init(_ arguments: Arguments) throws(UsageError) {
    isJSON = arguments.flag("json")
    isQuiet = arguments.flag("quiet")
    isVerbose = arguments.flag("verbose")
    if isQuiet && isVerbose { throw UsageError("--quiet and --verbose: which of the two?") }
    if isQuiet && isJSON { throw UsageError("--quiet and --json: which of the two?") }
  }

  static let declared: [OptionDeclaration] = [
    .flag("json", "one JSON object a line: destination, start, progress, done, failed, summary"),
    .flag("quiet", short: "q", "only failures"),
    .flag("verbose", short: "v", "also every file that needed nothing, and why others are left out"),
  ]
}
