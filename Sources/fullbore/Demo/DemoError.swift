/// Why the demo does not go on.
struct DemoError: Error, Sendable, CustomStringConvertible {
  let message: String
  /// Ctrl-C, not a failure.
  let isInterruption: Bool

  init(_ message: String, isInterruption: Bool = false) {
    self.message = message
    self.isInterruption = isInterruption
  }

  static let interrupted = DemoError("interrupted", isInterruption: true)

  var description: String { message }
}
