import BlobHTTP
import BlobUpload
import Synchronization

/// The message of a failure, and advice behind it.
func advised(_ message: String, _ advice: String?) -> String {
  guard let advice else { return message }
  return message.last.map { ".?!".contains($0) } == true ? "\(message) \(advice)" : "\(message). \(advice)"
}

/// The advice that was given to a person before. Each piece is given once, since thousands of files may fail alike.
final class GivenAdvice: Sendable {
  private let given = Mutex<Set<String>>([])
  /// Advice may have the name of a file in it, so that there may be any number of pieces.
  private static let most = 256

  /// The message, with the advice behind it if that was not given before.
  func text(_ message: String, _ advice: String?) -> String {
    advised(message, advice.flatMap { isNew($0) ? $0 : nil })
  }

  /// Whether the advice was not given before. It counts as given from now on.
  func isNew(_ advice: String) -> Bool {
    given.withLock { given in
      if given.count >= Self.most { given = [] }
      return given.insert(advice).inserted
    }
  }
}

extension UploadError {
  /// The message, and advice on what to do with this command.
  var advised: String { advised(goesOn: true) }

  /// The message about a test file, whose name no other file has, and advice where none of it is about names.
  var advisedForTestFile: String { [409, 412].contains(status) ? message : advised }

  /// `goesOn` means that the next push resumes this upload; otherwise it sends the file from its first byte.
  private func advised(goesOn: Bool) -> String { fullbore.advised(message, advice(goesOn: goesOn)) }

  /// Advice on what to do; nil: there is none. `isResume`: the command is `resume`, which does as the push was told.
  func advice(goesOn: Bool, isResume: Bool = false, isSealed: Bool = false) -> String? {
    guard var advice = advice(goesOn) else { return nil }
    if isSealed, isNameTaken {
      advice =
        "Each time a file is sealed it has other bytes, so this push cannot tell whether that is the same file: 'fullbore check "
        + "--download --identity FILE' can, and the next push counts what it has found equal as done. \(advice)"
    }
    return isResume && isNameTaken
      ? "'fullbore resume' does as the push was told, so run the same push again with an option: \(advice)" : advice
  }

  private func advice(_ goesOn: Bool) -> String? {
    if let clash = cause as? NameClash { return clash.advice }
    if cause is RefusedKeys {
      // The other errors have advice in their message.
      return status.map { _ in "Are the access key, its secret and its session token the right ones for this endpoint?"
      }
    }
    if let hint = readOnlyHint(for: message) ?? folderHint(for: message) { return hint }
    if message.hasSuffix(" that an earlier run began)") {
      return
        "Run the same command again later. If other files arrive there meanwhile, the server's record of this upload is "
        + "broken: 'fullbore abort ID --forget', with the ID of 'fullbore status', has it begin anew"
    }
    if let status, let advice = Self.advice(status, to: message, goesOn: goesOn) { return advice }
    return (cause as? TransportError).flatMap { Self.advice($0, goesOn) }
  }

  /// Advice for a command that reads what is there, and sends nothing; nil: there is none.
  var readingAdvice: String? {
    let again = "Run the same command again later: what is restored stays"
    return switch status {
    case 403: "Are these the right credentials, and may they read there?"
    case 423, 425, 429, 500, 502, 503, 504: again
    default: (cause as? TransportError)?.code == .broken ? again : advice(true)
    }
  }

  private static func nextPush(_ goesOn: Bool) -> String {
    goesOn ? "what is there is not sent again" : "it is sent from its first byte then"
  }

  /// Advice for a response with this status; `message` is the error message.
  static func advice(_ status: Int, to message: String, goesOn: Bool = true) -> String? {
    switch status {
    case 405 where message.contains(" cannot be read back: "), 501 where message.contains(" cannot be read back: "):
      "--verify is for servers that give out what they took: leave it out for this one"
    // The request did not create a file, so advice about a taken name does not apply.
    case 409 where message.hasPrefix("GET ") || message.hasPrefix("HEAD "): nil
    // The name is free. The id is made of the files, so that no other name changes it.
    case 409 where message.contains(" wait in the group "):
      "Run the same command again once the files that wait there have arrived or have expired: \(nextPush(goesOn))"
    case 409 where message.contains("a file is in the place of a folder"):
      "Nothing replaces a file by a folder: delete or rename that file there, or send to another folder"
    case 409 where message.contains(" is a folder"):
      "To send into that folder, end the destination with a slash; otherwise send the file under another name, with "
        + "--name or --layout"
    case 409 where message.hasPrefix("PUT ") && message.contains(" would replace"):
      "--on-conflict rename sends it under a name with a number; or send it to another folder or under another name, with "
        + "--name or --layout"
    case 401: "Give credentials that it takes with --token-file FILE, --netrc or --header @FILE"
    case 403: "Are these the right credentials, and may they write there?"
    case 404: "Is the path right?"
    case 405, 501: "Is the path right? put+, tus+ or resumable+ before the URL chooses the protocol by hand"
    case 407: "Give a proxy URL with user and password with --proxy @FILE"
    case 409, 412:
      "--on-conflict rename keeps both, under a name with a number; --overwrite replaces that file, which is lost then; or "
        + "send this one to another folder or under another name, with --name or --layout"
    case 413: "Only the server's owner can raise its limit, or that of a proxy before it"
    case 423, 425, 429, 500, 502, 503, 504: "Run the same command again later: \(nextPush(goesOn))"
    case 507: "Make room there, then run the same command again: \(nextPush(goesOn))"
    default: nil
    }
  }

  private static func advice(_ error: TransportError, _ goesOn: Bool) -> String? {
    switch error.code {
    case .resolve: "Is the name right, and this machine online?"
    case .connect where error.message.hasSuffix("(the limit is ulimit -n)"):
      "Raise the limit, or send fewer files at once with --jobs"
    case .connect: "Is it running there, and is the port right?"
    case .untrusted: "If it is the right one, trust its authority's certificate with --cacert FILE"
    case .proxy where error.message.contains(" refuses to connect us to "):
      "Is it the right proxy, and may it be used for this server? --proxy names another one"
    case .proxy: "See --proxy: @FILE may hold a URL with user and password"
    case .broken: "Run the same command again: \(nextPush(goesOn))"
    case .timeout: "Is it overloaded? --timeout and --finish-timeout allow more"
    case .badResponse where error.message.contains(" section of what "): nil
    case .badResponse: "Is the port right?"
    case .longResponse: "Is the URL the one for uploads? The file may be there"
    default: nil
    }
  }
}
