import Blobs
import Platform

/// The options of `watch`: a push of folders, and its intervals.
struct WatchOptions: Sendable {
  var push: PushOptions
  /// How long a file must stay unchanged.
  var settle: Duration = .seconds(2)
  /// A closed file must stay unchanged as long, too: the user has said how long, or a program may delete it.
  var waitsOnceClosed = false
  /// The interval of complete walks; nil walks again only if events may have been missed.
  var rescan: Duration?
  /// Run for each file that has arrived.
  var command: UploadCommand?

  init(_ arguments: Arguments) throws(UsageError) {
    let arguments = try arguments.withPlace()
    push = try PushOptions(arguments)
    if let settle = try Self.settle(arguments) { (self.settle, waitsOnceClosed) = (settle, true) }
    rescan = try Self.rescan(arguments)
    command = if let path = arguments.value("on-done") { try UploadCommand(path, option: "on-done") } else { nil }
    if command != nil { waitsOnceClosed = true }
    guard push.urls.isEmpty, push.databases.isEmpty, !push.readsStandardInput else {
      throw UsageError("only folders are watched")
    }
    for source in push.sources { try Self.check(source) }
    let paths = push.sources.map { BytePath($0.absolute().components.flatMap { [UInt8(ascii: "/")] + $0.bytes }) }
    for (index, path) in paths.enumerated() {
      for (other, folder) in paths.enumerated() where other != index {
        if path == folder || path.bytes.starts(with: folder.bytes + [UInt8(ascii: "/")]) {
          throw UsageError(
            "'\(shown(push.sources[index]))' lies in '\(shown(push.sources[other]))': give one of the two")
        }
      }
    }
  }

  private static let wanted = "a duration, like 5s or 1h"

  static func settle(_ arguments: Arguments) throws(UsageError) -> Duration? {
    try arguments.parsed("settle", wanted: wanted, Quantity.duration)
  }

  static func rescan(_ arguments: Arguments) throws(UsageError) -> Duration? {
    try arguments.parsed("rescan", wanted: wanted) { text in
      Quantity.duration(text).flatMap { $0 >= .seconds(1) ? $0 : nil }
    }
  }

  private static func check(_ source: BytePath) throws(UsageError) {
    var status = stat()
    if source.absolute().status(&status) != 0 {
      throw UsageError("source '\(shown(source))': \(String(cString: strerror(errno)))")
    }
    if status.st_mode & S_IFMT != S_IFDIR { throw UsageError("source '\(shown(source))': only folders are watched") }
  }

  static let declared: [OptionDeclaration] =
    [
      .value("settle", "DURATION", "how long a file must have been left alone; 2s when not given"),
      .value(
        "rescan", "DURATION",
        "look at everything again so often, as network drives need; not done when not given"),
      .value(
        "on-done", "COMMAND",
        "a program to run for each file that has arrived, with its path as the argument"),
    ] + PushOptions.declared

  static let notes = """
    Sends what is in the folders as 'fullbore push' does, then what is new or changed, also in new folders, until
    Ctrl-C or SIGTERM; run again, it goes on where it was. A file that is being written waits until it is closed, or was
    left alone for the time of --settle. If --settle or --on-done is given, a closed file must be left
    alone as long, too. Where the system does not tell who has a file open, as of other users' files and
    on network drives, it waits until it is closed, or was left alone for a minute; for 15 minutes where it was seen to
    be written and not to be closed. Of a file with several names (hard links) the system tells only the one that a
    program uses: the others are sent when all is looked at, as --rescan does. What a symbolic link leads to is looked at
    every 10 seconds. On macOS, all is looked at once a minute, or as often as --rescan says, because the system does not
    tell what changes. What is renamed is sent under its new name; what is deleted stays at the destination. A file whose
    name says that a program is still making it is left out until it is renamed, and named with
    -v: one that ends in \(UnfinishedName.endings.joined(separator: " ")), begins with ~$, or is
    like rsync's .NAME.XXXXXX ('fullbore push' sends them). A file that has only grown replaces what this journal sent of
    it; one that changed otherwise needs --overwrite. A destination that is away is tried again. Once a day a line says what
    was sent in the day before. --on-done runs its program, without a shell, for one file after the other, in the order in
    which they have arrived, if the file is still what was sent; the program may move or delete it. It is run again for what
    a new watch finds in the folders and an earlier one has sent, since that may have ended before.
    Exit status: 130 interrupted, which is how a watch ends; 1 the journal cannot be written; 2 wrong usage; 3 the
    destination refuses us from the beginning.
    """
}
