/// The manual page fullbore(1), made from the declarations of all commands. mdoc(7).
struct ManualPage: Sendable {
  let commands: [CommandDeclaration]
  let version: String

  var text: String {
    head + commands.map(section).joined() + """
      .Sh ENVIRONMENT
      .Bl -tag -width Ds
      .It Ev FULLBORE_JOURNAL
      the journal, where
      .Fl Fl journal
      is not given
      .It Ev XDG_STATE_HOME
      the folder of the folder of the journal and of the certificate of
      .Fl Fl tls Ar self ;
      .Pa ~/.local/state
      when not set
      .It Ev XDG_CONFIG_HOME
      the folder of the folder of
      .Pa config.toml ,
      which has the places;
      .Pa ~/.config
      when not set
      .It Ev http_proxy , https_proxy , all_proxy , no_proxy
      proxies, and the hosts for which none is used
      .It Ev NETRC
      the file of
      .Fl Fl netrc
      .It Ev AWS_ACCESS_KEY_ID , AWS_SECRET_ACCESS_KEY , AWS_SESSION_TOKEN , AWS_PROFILE , AWS_REGION , AWS_ENDPOINT_URL
      keys and places of
      .Li s3://
      .It Ev FULLBORE_MEDIA
      the program that renders edits of photos; by default
      .Pa fullbore-media
      beside
      .Nm
      .El
      .Sh EXIT STATUS
      .Bl -tag -width Ds
      .It 0
      everything is there
      .It 1
      something failed, and was named; the rest was done
      .It 2
      wrong usage; nothing was done
      .It 3
      the destination cannot be reached, or refuses us
      .It 130
      interrupted; run again, it goes on
      .El
      .Sh SEE ALSO
      .Xr curl 1 ,
      .Xr sha256sum 1

      """
  }

  private var head: String {
    """
    .\\" Made by 'fullbore manual'.
    .Dd $Mdocdate$
    .Dt FULLBORE 1
    .Os "fullbore \(Self.escaped(version))"
    .Sh NAME
    .Nm fullbore
    .Nd send large files to servers, and receive them
    .Sh SYNOPSIS
    \(commands.map { ".Nm\n.Cm \(Self.word($0.synopsis))\n.Op Ar option ...\n" }.joined()).Sh DESCRIPTION
    .Nm
    sends photos, videos and any other files to a server, without a copy on disk and with little memory, and receives them.
    After an interruption the same command goes on at the byte where it was.
    .Pp
    Options may stand anywhere after the command.
    .Sh COMMANDS

    """
  }

  private func section(_ command: CommandDeclaration) -> String {
    let options = command.groups.map { group, members in
      (group == .everyday ? "" : ".Pp\n\(Self.line(group.rawValue)):\n")
        + ".Bl -tag -width Ds\n\(members.map(Self.item).joined()).El\n"
    }
    let examples = command.examples.map {
      ".It Li \(Self.word("fullbore \($0.arguments)"))\n\(Self.line($0.meaning))\n"
    }
    let notes = command.notes.isEmpty ? "" : ".Pp\n" + Self.lines(command.notes)
    return
      ".Ss \(command.name)\n.Nm Cm \(Self.word(command.synopsis))\n.Pp\n\(Self.line(command.summary))\n"
      + (examples.isEmpty ? "" : ".Pp\nExamples:\n.Bl -tag -width Ds\n\(examples.joined()).El\n")
      + (options.isEmpty ? "" : ".Pp\nOptions:\n" + options.joined()) + notes
  }

  private static func item(_ option: OptionDeclaration) -> String {
    let short = option.short.map { "Fl \($0) , " } ?? ""
    let value = option.value.map { " Ar \(word($0))" } ?? ""
    return ".It \(short)Fl Fl \(option.name)\(value)\n\(line(option.help))\n"
  }

  /// `text` as one argument of a macro.
  private static func word(_ text: String) -> String { "\"\\&\(escaped(text).replacing("\"", with: "\\(dq"))\"" }

  private static func lines(_ text: String) -> String {
    text.split(separator: "\n").map { line(String($0)) + "\n" }.joined()
  }

  /// `text` as lines of text, each sentence of which begins a line, so that it is spaced rightly. A line that begins with
  /// a dot or an apostrophe would be a request.
  private static func line(_ text: String) -> String {
    let text = escaped(text).replacing(". ", with: ".\n")
    return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
  }

  /// Without an escape, a hyphen could be printed as another character than the one to type.
  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("'", with: "\\(aq")
      .replacing("~", with: "\\(ti").replacing("^", with: "\\(ha")
  }
}
