import Blobs
import Platform

/// Asks the user on the terminal.
struct Prompt: Sendable {
  /// nil: standard input or standard error is no terminal.
  init?() { if isatty(0) != 1 || isatty(2) != 1 { return nil } }

  /// The answer without spaces around it; nil: it is empty, or there is none. This call blocks. `isSecret`: the
  /// terminal does not show what is typed.
  func ask(_ question: String, isSecret: Bool = false) -> String? {
    Console.output.flush()
    Console.error.write(question)
    var saved = termios()
    let hides = isSecret && tcgetattr(0, &saved) == 0
    if hides {
      // Nobody could see what they type after an interruption.
      Signals.onInterrupt { [saved] _ in
        var saved = saved
        tcsetattr(0, TCSAFLUSH, &saved)
        _exit(ExitStatus.interrupted.rawValue)
      }
      var silent = saved
      silent.c_lflag &= ~tcflag_t(ECHO)
      tcsetattr(0, TCSAFLUSH, &silent)
    }
    defer {
      if hides {
        tcsetattr(0, TCSAFLUSH, &saved)
        Console.error.write("\n")
      }
    }
    let answer = readLine()?.trimmed
    return answer?.isEmpty == true ? nil : answer
  }
}

/// Asks for the credentials of a new place, and keeps them outside its file.
struct CredentialPrompt: Sendable {
  private let prompt: Prompt
  private let place: Place
  /// The folder of `config.toml`.
  private let folder: BytePath

  init(_ prompt: Prompt, _ place: Place, _ file: BytePath) {
    (self.prompt, self.place) = (prompt, place)
    folder = file.folder
  }

  /// The lines for `config.toml`; nil: the user gives none. Files with secrets that were made are added to `made`.
  func ask(_ made: inout [BytePath]) throws(UsageError) -> [String]? {
    guard let user = prompt.ask("User there, or - where a token is wanted: ") else { return nil }
    let isToken = user == "-"
    guard let secret = prompt.ask(isToken ? "Token: " : "Password (better: an app password): ", isSecret: true) else {
      return nil
    }
    if let command = keepInKeyring(secret) {
      if isToken { return [PlaceText.line("token-command", command)] }
      return [PlaceText.line("user", user), PlaceText.line("password-command", command)]
    }
    let file = folder.appending(BytePath("\(place.name).\(isToken ? "token" : "netrc")"))
    if !file.isMissing { throw UsageError("\(shown(file)) is there already: remove it, or give it to 'places add'") }
    let host = place.endpoint?.host ?? ""
    func word(_ text: String) -> String {
      "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }
    let text = isToken ? "\(secret)\n" : "machine \(host) login \(word(user)) password \(word(secret))\n"
    try PlacesFile.write(Array(text.utf8), to: file)
    made.append(file)
    return [PlaceText.line(isToken ? "token-file" : "netrc-file", file.description)]
  }

  /// Gives the secret to libsecret's tool. Returns the command that prints it; nil: there is no such tool, or no keyring.
  private func keepInKeyring(_ secret: String) -> String? {
    guard let tool = Self.secretTool() else { return nil }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var pid: pid_t = 0
    let failure = spawnProgram(
      tool, ["store", "--label", BytePath("fullbore \(place.name)"), "fullbore", BytePath(place.name)],
      variables: processEnvironment(), descriptors: [(ours: ends[0], its: 0), (ours: 2, its: 1), (ours: 2, its: 2)],
      &pid)
    close(ends[0])
    // The pipe holds more than a secret has.
    let bytes = Array(secret.utf8.prefix(4096))
    _ = bytes.withUnsafeBytes { write(ends[1], $0.baseAddress, $0.count) }
    close(ends[1])
    if failure != 0 { return nil }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    if status != 0 {
      Console.error.write("The keyring does not take it: it is kept in a file for you alone.\n")
      return nil
    }
    return "secret-tool lookup fullbore \(place.name)"
  }

  private static func secretTool() -> BytePath? {
    let folders = environment("PATH")?.bytes.split(separator: UInt8(ascii: ":")) ?? []
    return folders.map { BytePath($0).appending("secret-tool") }.first { path in
      path.isAbsolute && path.withCString { access($0, X_OK) } == 0
    }
  }
}
