import BlobUpload
import Blobs
import Glibc

/// What the journal knows, for people and for programs.
struct StatusCommand: Command {
  static let declaration = CommandDeclaration(
    name: "status", synopsis: "status", summary: "what the journal knows: done, under way, failed (with the reason)",
    options: [
      .flag("all", "every file, also what is done"), journalOption,
      .flag("json", "one JSON object a line: destination, file"),
    ],
    notes: "'fullbore resume' finishes what is under way or failed; 'fullbore abort' gives it up.")

  let journal: BytePath
  let showsAll: Bool
  let isJSON: Bool

  init(_ arguments: Arguments) throws(UsageError) {
    if let operand = arguments.operands.first { throw UsageError("'\(shown(operand))': status takes no names") }
    journal = try journalPath(arguments)
    showsAll = arguments.flag("all")
    isJSON = arguments.flag("json")
  }

  func run() async -> ExitStatus {
    // Asking must not make a journal.
    if journal.withCString({ access($0, F_OK) }) != 0 {
      if !isJSON { Console.output.write("There is no journal at \(shown(journal)): nothing was pushed yet.\n") }
      return .ok
    }
    do throws(JournalError) {
      let journal = try await Journal(at: journal)
      let status = JournalStatus(
        sums: try await journal.summary(), unfinished: try await journal.unfinished(),
        done: showsAll ? try await journal.entries(.done, limit: -1) : [], showsAll: showsAll)
      await journal.close()
      Console.output.write(isJSON ? status.json : status.text)
      return .ok
    } catch {
      Console.error.write("fullbore status: \(shown(error.message))\n")
      return .failed
    }
  }
}

/// What was read from the journal, ready to be told.
struct JournalStatus {
  let sums: [JournalSummary]
  let unfinished: [JournalEntry]
  let done: [JournalEntry]
  let showsAll: Bool
  /// Files named under one heading, unless all are wanted.
  private let most = 20

  var text: String {
    if sums.isEmpty { return "The journal is empty: nothing was pushed yet.\n" }
    var text = ""
    for (destination, sums) in grouped {
      text += "\(shown(destination.endpoint)) (\(destination.protocolName))\n"
      for sum in sums {
        let part = sum.state == .done ? "" : "\(Quantity.text(bytes: sum.acknowledged)) of "
        text +=
          "  \(name(sum.state)): \(Quantity.plural(sum.count, "file")), \(part)\(Quantity.text(bytes: sum.bytes))\n"
      }
    }
    text += list("Failed", unfinished.filter { $0.state == .failed })
    text += list("Under way", unfinished.filter { $0.state != .failed })
    return text + list("Done", done)
  }

  var json: String {
    var lines: [JSONLine] = sums.map { sum in
      var line = JSONLine("destination")
      line.add("endpoint", sum.destination.endpoint)
      line.add("protocol", sum.destination.protocolName)
      line.add("state", name(sum.state))
      line.add("files", sum.count)
      line.add("bytes", sum.bytes)
      line.add("acknowledged", sum.acknowledged)
      return line
    }
    lines += (unfinished + done).map { entry in
      var line = JSONLine("file")
      line.add("id", entry.id)
      line.add("state", name(entry.state))
      line.add(path: entry.intent.path)
      line.add("source", entry.intent.source.description)
      line.add("endpoint", entry.destination.endpoint)
      if let length = entry.intent.length { line.add("length", length) }
      line.add("acknowledged", entry.acknowledged)
      if let error = entry.error { line.add("message", error) }
      if let owner = entry.owner { line.add("pid", owner.pid) }
      line.add("updated", entry.updated)
      return line
    }
    return lines.map { $0.text + "\n" }.joined()
  }

  /// Sums by destination, in the order in which they come.
  private var grouped: [(JournalDestination, [JournalSummary])] {
    var groups: [(JournalDestination, [JournalSummary])] = []
    for sum in sums {
      if let index = groups.firstIndex(where: { $0.0 == sum.destination }) {
        groups[index].1.append(sum)
      } else {
        groups.append((sum.destination, [sum]))
      }
    }
    return groups
  }

  private func list(_ heading: String, _ entries: [JournalEntry]) -> String {
    if entries.isEmpty { return "" }
    let named = showsAll ? entries[...] : entries.prefix(most)
    var text = "\n\(heading):\n"
    for entry in named { text += "  \(entry.id)  \(line(entry))\n" }
    let rest = entries.count - named.count
    return rest > 0 ? text + "  and \(Quantity.grouped(rest)) more: 'fullbore status --all'\n" : text
  }

  private func line(_ entry: JournalEntry) -> String {
    var text = shown(entry.intent.path)
    let length = entry.intent.length.map { Quantity.text(bytes: $0) } ?? "unknown length"
    text += entry.state == .done ? "  \(length)" : "  \(Quantity.text(bytes: entry.acknowledged)) of \(length)"
    if let owner = entry.owner { text += ", process \(owner.pid) is sending it" }
    if entry.state == .failed, let error = entry.error { text += ": \(shown(error))" }
    return text
  }

  private func name(_ state: JournalEntry.State) -> String {
    switch state {
    case .done: "done"
    case .failed: "failed"
    case .intent, .open: "under way"
    }
  }
}
