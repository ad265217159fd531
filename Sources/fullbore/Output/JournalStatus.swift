import BlobUpload
import Blobs

/// The state of the journal, formatted for output. There may be millions of entries, so it keeps sums of them and the few
/// that are shown by default; all of them are read from the journal while they are written.
struct JournalStatus {
  let sums: [JournalSummary]
  /// Pushes whose sources are not completely listed.
  let listings: [JournalListing]
  let showsAll: Bool
  /// Seconds since 1970.
  let now: Int64
  /// The only state whose unfinished entries are shown; nil: all are.
  var only: Standing?
  private(set) var groups: [Place: [Standing: Group]] = [:]
  /// The servers' answers by entry ID, with `--check`.
  var answers: [Int64: ServerAnswer] = [:]
  /// Unfinished uploads whose source cannot be read again.
  var lost: [Int64: LostSource] = [:]
  /// Maximum number of files per heading, unless all are requested.
  private static let most = 20

  init(sums: [JournalSummary], listings: [JournalListing] = [], showsAll: Bool, now: Int64) {
    self.sums = sums
    self.listings = listings
    self.showsAll = showsAll
    self.now = now
  }

  /// The state of an upload, in the order of the headings.
  enum Standing: String, CaseIterable, Sendable {
    case failed = "failed"
    /// A process is sending it.
    case running = "under way"
    case interrupted = "interrupted"

    /// The state by the word of an option; nil: there is none.
    init?(option: String) {
      guard let found = Self.allCases.first(where: { option == ($0 == .running ? "running" : $0.rawValue) }) else {
        return nil
      }
      self = found
    }

    init(_ entry: JournalEntry) {
      self = [.failed, .refused].contains(entry.state) ? .failed : entry.owner != nil ? .running : .interrupted
    }
  }

  /// A URL and its protocol. Pushes with different options, such as `--overwrite`, share a place.
  struct Place: Hashable {
    var endpoint: String
    var protocolName: String

    init(_ destination: JournalDestination) {
      (endpoint, protocolName) = (destination.endpoint, destination.protocolName)
    }
  }

  /// Unfinished entries of one place and state.
  struct Group {
    var count = 0
    /// Bytes that were sent, and those of the known lengths.
    var (reached, whole, acknowledged): (Int64, Int64, Int64) = (0, 0, 0)
    /// All lengths are known.
    var isWhole = true
    /// The first ones.
    var named: [JournalEntry] = []
  }

  /// Adds an unfinished entry, the oldest first.
  mutating func add(_ entry: JournalEntry) {
    if let only, Standing(entry) != only { return }
    var group = groups[Place(entry.destination)]?[Standing(entry)] ?? Group()
    group.count += 1
    group.reached = group.reached.addingClamped(entry.reached)
    group.whole = group.whole.addingClamped(entry.intent.length ?? 0)
    group.acknowledged = group.acknowledged.addingClamped(entry.acknowledged)
    if entry.intent.length == nil { group.isWhole = false }
    if group.named.count < Self.most { group.named.append(entry) }
    groups[Place(entry.destination), default: [:]][Standing(entry)] = group
    if entry.owner == nil, entry.state != .refused {
      resumable.count += 1
      resumable.first = resumable.first ?? entry.id
    }
  }

  /// How many entries `fullbore resume` goes on with, and the first one's id.
  private var resumable: (count: Int, first: Int64?) = (0, nil)

  /// The unfinished entries that are listed by name.
  var named: [JournalEntry] {
    places.flatMap { place in Standing.allCases.flatMap { groups[place]?[$0]?.named ?? [] } }
  }

  /// Writes the text piece by piece. `pages`: where all entries are read, if they are shown.
  func write(_ pages: JournalPages, _ put: (String) -> Void) async throws(JournalError) {
    let advice = GivenAdvice()
    if sums.isEmpty && listings.isEmpty {
      return put("The journal has nothing of that: nothing was pushed yet, or only elsewhere.\n")
    }
    if let only, places.isEmpty { put("No file is \(only.rawValue).\n") }
    for place in places {
      put("\(shown(place.endpoint)) (\(place.protocolName))\n")
      var pages = pages
      pages.destinations = Set(sums.filter { Place($0.destination) == place }.map(\.destinationID))
      let (count, bytes) = whatIsDone(at: place)
      if count > 0 { put("  done: \(Quantity.plural(count, "file")), \(Quantity.text(bytes: bytes))\n") }
      if showsAll, only == nil {
        pages.isDone = true
        try await pages.forEach { page in page.forEach { put(line($0, advice)) } }
        pages.isDone = false
      }
      for standing in Standing.allCases {
        guard let group = groups[place]?[standing] else { continue }
        put(heading(standing, group))
        if showsAll {
          try await pages.forEach { page in page.forEach { if Standing($0) == standing { put(line($0, advice)) } } }
          continue
        }
        group.named.forEach { put(line($0, advice)) }
        if group.count > Self.most {
          put("    and \(Quantity.grouped(group.count - Self.most)) more: 'fullbore status --all'\n")
        }
      }
    }
    put(ending)
  }

  private var ending: String {
    var text = places.isEmpty || listings.isEmpty ? "" : "\n"
    for listing in listings {
      if let owner = listing.owner {
        text += "process \(owner.pid) pushes \(shown(listing.route)), and does not know all its files yet\n"
      } else {
        text += "\(shown(listing.complaint)), \(age(listing.created)): \(JournalListing.remedy)\n"
      }
    }
    return text + advice
  }

  /// Places in the order of their first push; with `only`, those that have such files.
  var places: [Place] {
    var seen: Set<Place> = []
    return sums.map { Place($0.destination) }
      .filter { place in (only == nil || groups[place] != nil) && seen.insert(place).inserted }
  }

  func whatIsDone(at place: Place) -> (count: Int, bytes: Int64) {
    let sums = sums.filter { $0.state == .done && Place($0.destination) == place }
    return (sums.reduce(0) { $0 + $1.count }, sums.lazy.map(\.bytes).clampedSum)
  }

  private func heading(_ standing: Standing, _ group: Group) -> String {
    let whole = group.isWhole ? "of \(Quantity.text(bytes: group.whole)) " : ""
    return
      "  \(standing.rawValue): \(Quantity.plural(group.count, "file")), \(Quantity.text(bytes: group.reached)) \(whole)sent\n"
  }

  /// `advice`: what was advised before, and is not said again.
  private func line(_ entry: JournalEntry, _ advice: GivenAdvice) -> String {
    let length = entry.intent.length.map { Quantity.text(bytes: $0) } ?? "unknown length"
    var text = "    \(entry.id)  \(shown(entry.intent.path))  "
    if entry.state == .done { return text + "\(length), \(time(entry.updated))\n" }
    switch answers[entry.id] {
    case .holds(let bytes, _): text += "the server holds \(Quantity.text(bytes: bytes)) of \(length)"
    case .gone: text += "the server has dropped it: \(length) go again"
    case .failed, nil:
      let isVouched = entry.reached == entry.acknowledged
      text += "\(isVouched ? "" : "up to ")\(Quantity.text(bytes: entry.reached)) of \(length) "
      text += isVouched && entry.session != nil ? "confirmed" : "sent"
    }
    text += ", begun \(time(entry.created))"
    if let owner = entry.owner {
      text += ", process \(owner.pid) is sending it"
    } else {
      text += ", last touched \(time(entry.updated))"
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
      if let remedy = remedy(for: error, goesOn: lost[entry.id] == nil), advice.isNew(remedy) {
        text += "        \(remedy)\n"
      }
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
  func expires(_ entry: JournalEntry) -> Int64? {
    switch answers[entry.id] {
    case .holds(_, let until): until ?? entry.session?.expires.flatMap { $0 > now ? $0 : nil }
    case .gone: nil
    case .failed, nil: entry.session?.expires
    }
  }

  /// The commands that continue or abort the unfinished uploads.
  private var advice: String {
    guard let first = resumable.first else { return "" }
    let lost = named.count { $0.owner == nil && $0.state != .refused && self.lost[$0.id] != nil }
    if lost == resumable.count { return "" }
    return "\n'fullbore resume' goes on with what is not under way; "
      + "'fullbore abort \(resumable.count == 1 ? "\(first)" : "ID")' gives it up.\n"
  }

  /// The time of day of the last twelve hours, with the day before that; and how long ago it was.
  private func time(_ time: Int64) -> String {
    let isRecent = abs(now.subtractingClamped(time)) < 12 * 3600
    return "\(LocalTime.text(time, isRecent ? "%H:%M" : "%Y-%m-%d %H:%M")) (\(age(time)))"
  }

  private func age(_ time: Int64) -> String { Quantity.age(seconds: now.subtractingClamped(time)) }
}
