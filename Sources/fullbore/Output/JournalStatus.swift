import BlobUpload
import Blobs

/// The state of the journal, formatted for output.
struct JournalStatus {
  let sums: [JournalSummary]
  let unfinished: [JournalEntry]
  let done: [JournalEntry]
  /// Pushes whose sources are not completely listed.
  let listings: [JournalListing]
  let showsAll: Bool
  /// Seconds since 1970.
  let now: Int64
  /// The servers' answers by entry ID, with `--check`.
  var answers: [Int64: ServerAnswer] = [:]
  /// Unfinished uploads whose source cannot be read again.
  var lost: [Int64: LostSource] = [:]
  /// Maximum number of files per heading, unless all are requested.
  private static let most = 20

  init(
    sums: [JournalSummary], unfinished: [JournalEntry], done: [JournalEntry], listings: [JournalListing] = [],
    showsAll: Bool, now: Int64
  ) {
    self.sums = sums
    self.unfinished = unfinished
    self.done = done
    self.listings = listings
    self.showsAll = showsAll
    self.now = now
  }

  /// The state of an upload, in the order of the headings.
  private enum Standing: String, CaseIterable {
    case failed = "failed"
    /// A process is sending it.
    case running = "under way"
    case interrupted = "interrupted"

    init(_ entry: JournalEntry) {
      self = [.failed, .refused].contains(entry.state) ? .failed : entry.owner != nil ? .running : .interrupted
    }
  }

  /// A URL and its protocol. Pushes with different options, such as `--overwrite`, share a place.
  private struct Place: Hashable {
    var endpoint: String
    var protocolName: String

    init(_ destination: JournalDestination) {
      (endpoint, protocolName) = (destination.endpoint, destination.protocolName)
    }
  }

  /// The unfinished entries that are listed by name.
  var named: [JournalEntry] {
    places.flatMap { place in Standing.allCases.flatMap { entries(of: place, $0).prefix(most) } }
  }

  var text: String {
    if sums.isEmpty && listings.isEmpty { return "The journal is empty: nothing was pushed yet.\n" }
    var text = ""
    for place in places {
      text += "\(shown(place.endpoint)) (\(place.protocolName))\n"
      let (count, bytes) = whatIsDone(at: place)
      if count > 0 { text += "  done: \(Quantity.plural(count, "file")), \(Quantity.text(bytes: bytes))\n" }
      for entry in done where Place(entry.destination) == place { text += line(entry) }
      for standing in Standing.allCases { text += list(standing, entries(of: place, standing)) }
    }
    if !text.isEmpty && !listings.isEmpty { text += "\n" }
    for listing in listings {
      if let owner = listing.owner {
        text += "process \(owner.pid) pushes \(shown(listing.route)), and does not know all its files yet\n"
      } else {
        text += "\(shown(listing.complaint)), \(age(listing.created)): \(JournalListing.remedy)\n"
      }
    }
    return text + advice
  }

  /// Places in the order of their first push.
  private var places: [Place] {
    var seen: Set<Place> = []
    return sums.map { Place($0.destination) }.filter { seen.insert($0).inserted }
  }

  private func whatIsDone(at place: Place) -> (count: Int, bytes: Int64) {
    let sums = sums.filter { $0.state == .done && Place($0.destination) == place }
    return (sums.reduce(0) { $0 + $1.count }, sums.lazy.map(\.bytes).clampedSum)
  }

  private var most: Int { showsAll ? .max : Self.most }

  private func entries(of place: Place, _ standing: Standing) -> [JournalEntry] {
    unfinished.filter { Place($0.destination) == place && Standing($0) == standing }
  }

  private func list(_ standing: Standing, _ entries: [JournalEntry]) -> String {
    if entries.isEmpty { return "" }
    let reached = entries.lazy.map(\.reached).clampedSum
    let whole = entries.lazy.map { $0.intent.length ?? 0 }.clampedSum
    let isWhole = entries.allSatisfy { $0.intent.length != nil }
    var text =
      "  \(standing.rawValue): \(Quantity.plural(entries.count, "file")), "
      + "\(Quantity.text(bytes: reached)) \(isWhole ? "of \(Quantity.text(bytes: whole)) " : "")sent\n"
    for entry in entries.prefix(most) { text += line(entry) }
    if entries.count > most {
      text += "    and \(Quantity.grouped(entries.count - most)) more: 'fullbore status --all'\n"
    }
    return text
  }

  private func line(_ entry: JournalEntry) -> String {
    let length = entry.intent.length.map { Quantity.text(bytes: $0) } ?? "unknown length"
    var text = "    \(entry.id)  \(shown(entry.intent.path))  "
    if entry.state == .done { return text + "\(length), \(age(entry.updated))\n" }
    switch answers[entry.id] {
    case .holds(let bytes, _): text += "the server holds \(Quantity.text(bytes: bytes)) of \(length)"
    case .gone: text += "the server has dropped it: \(length) go again"
    case .failed, nil:
      let isVouched = entry.reached == entry.acknowledged
      text += "\(isVouched ? "" : "up to ")\(Quantity.text(bytes: entry.reached)) of \(length) "
      text += isVouched && entry.session != nil ? "confirmed" : "sent"
    }
    text += ", begun \(age(entry.created))"
    if let owner = entry.owner {
      text += ", process \(owner.pid) is sending it"
    } else {
      text += ", last touched \(age(entry.updated))"
    }
    if let expires = expires(entry), entry.owner == nil {
      text +=
        expires > now
        ? ", kept for \(Quantity.text(.seconds(expires.subtractingClamped(now))))"
        : ", may have expired ('--check' asks)"
    }
    text += "\n"
    if entry.isStored {
      text += "        it is there; 'fullbore resume' deletes the temporary files that are left beside it\n"
    }
    if Standing(entry) == .failed, let error = entry.error {
      text += "        \(shown(error))\n"
      if let remedy = remedy(for: error) { text += "        \(remedy)\n" }
    }
    if entry.state == .refused { text += "        \(entry.refusalRemedy)\n" }
    if let lost = lost[entry.id] {
      text += "        \(shown(lost.complaint)): \(lost.remedy), or 'fullbore abort \(entry.id)' gives it up\n"
    }
    if case .failed(let message) = answers[entry.id] { text += "        not asked: \(shown(message))\n" }
    return text
  }

  /// When the server drops the upload, by its most recent statement. The journal's value dates from the last completed
  /// request. If the server was asked and still holds the upload, a time in the past is outdated.
  private func expires(_ entry: JournalEntry) -> Int64? {
    switch answers[entry.id] {
    case .holds(_, let until): until ?? entry.session?.expires.flatMap { $0 > now ? $0 : nil }
    case .gone: nil
    case .failed, nil: entry.session?.expires
    }
  }

  /// The commands that continue or abort the unfinished uploads.
  private var advice: String {
    let left = unfinished.filter { $0.owner == nil && $0.state != .refused }
    guard let first = left.first else { return "" }
    if left.allSatisfy({ lost[$0.id] != nil }) { return "" }
    return "\n'fullbore resume' goes on with what is not under way; "
      + "'fullbore abort \(left.count == 1 ? "\(first.id)" : "ID")' gives it up.\n"
  }

  private func age(_ time: Int64) -> String { Quantity.age(seconds: now.subtractingClamped(time)) }
}

// JSON output.
extension JournalStatus {
  var json: String {
    var lines: [JSONLine] = []
    for place in places {
      for standing in Standing.allCases {
        let entries = entries(of: place, standing)
        if entries.isEmpty { continue }
        var line = json(place, standing.rawValue, files: entries.count)
        line.add("bytes", entries.lazy.map { $0.intent.length ?? 0 }.clampedSum)
        line.add("acknowledged", entries.lazy.map(\.acknowledged).clampedSum)
        line.add("sent", entries.lazy.map(\.reached).clampedSum)
        lines.append(line)
      }
      let (count, bytes) = whatIsDone(at: place)
      if count == 0 { continue }
      var line = json(place, "done", files: count)
      line.add("bytes", bytes)
      line.add("acknowledged", bytes)
      lines.append(line)
    }
    lines += (unfinished + done).map(json)
    for listing in listings {
      for source in listing.sources {
        var line = JSONLine(listing.owner == nil ? "unread" : "reading")
        line.add("endpoint", listing.destination.endpoint)
        line.add("source", source.description)
        if let owner = listing.owner { line.add("pid", owner.pid) }
        line.add("created", listing.created)
        lines.append(line)
      }
    }
    return lines.map { $0.text + "\n" }.joined()
  }

  private func json(_ place: Place, _ state: String, files: Int) -> JSONLine {
    var line = JSONLine("destination")
    line.add("endpoint", place.endpoint)
    line.add("protocol", place.protocolName)
    line.add("state", state)
    line.add("files", files)
    return line
  }

  private func json(_ entry: JournalEntry) -> JSONLine {
    var line = JSONLine("file")
    line.add("id", entry.id)
    line.add("state", entry.state == .done ? "done" : Standing(entry).rawValue)
    line.add(path: entry.intent.path)
    line.add("source", entry.intent.source.description)
    line.add("endpoint", entry.destination.endpoint)
    line.add("target", entry.intent.target)
    if let length = entry.intent.length { line.add("length", length) }
    line.add("acknowledged", entry.acknowledged)
    if entry.state != .done { line.add("sent", entry.reached) }
    switch answers[entry.id] {
    case .holds(let bytes, _): line.add("held", bytes)
    case .gone: line.add("held", 0)
    case .failed(let message): line.add("not_asked", message)
    case nil: break
    }
    if let error = entry.error { line.add("message", error) }
    if let lost = lost[entry.id] { line.add("source_lost", lost.complaint) }
    if let owner = entry.owner { line.add("pid", owner.pid) }
    line.add("created", entry.created)
    line.add("updated", entry.updated)
    if let expires = expires(entry) { line.add("expires", expires) }
    return line
  }
}
