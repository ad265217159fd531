import BlobUpload
import Blobs

// JSON output.
extension JournalStatus {
  /// Writes one object a line, piece by piece. `pages`: where all entries are read.
  func writeJSON(_ pages: JournalPages, _ put: (String) -> Void) async throws(JournalError) {
    for place in places {
      for standing in Standing.allCases {
        guard let group = groups[place]?[standing] else { continue }
        var line = json(place, standing.rawValue, files: group.count)
        line.add("bytes", group.whole)
        line.add("acknowledged", group.acknowledged)
        line.add("sent", group.reached)
        put(line.text + "\n")
      }
      let (count, bytes) = whatIsDone(at: place)
      if count == 0 { continue }
      var line = json(place, "done", files: count)
      line.add("bytes", bytes)
      line.add("acknowledged", bytes)
      put(line.text + "\n")
    }
    var pages = pages
    try await pages.forEach { page in
      let lost = await LostSource.find(page)
      for entry in page where only == nil || only == Standing(entry) { put(json(entry, lost[entry.id]).text + "\n") }
    }
    if showsAll, only == nil {
      pages.isDone = true
      try await pages.forEach { page in page.forEach { put(json($0, nil).text + "\n") } }
    }
    for listing in listings {
      for source in listing.sources {
        var line = JSONLine(listing.owner == nil ? "unread" : "reading")
        line.add("endpoint", listing.destination.endpoint)
        line.add("source", source.description)
        if let owner = listing.owner { line.add("pid", owner.pid) }
        line.add("created", listing.created)
        put(line.text + "\n")
      }
    }
  }

  private func json(_ place: Place, _ state: String, files: Int) -> JSONLine {
    var line = JSONLine("destination")
    line.add("endpoint", place.endpoint)
    line.add("protocol", place.protocolName)
    line.add("state", state)
    line.add("files", files)
    return line
  }

  private func json(_ entry: JournalEntry, _ lost: LostSource?) -> JSONLine {
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
    if let lost { line.add("source_lost", lost.complaint) }
    if let owner = entry.owner { line.add("pid", owner.pid) }
    line.add("created", entry.created)
    line.add("updated", entry.updated)
    if let expires = expires(entry) { line.add("expires", expires) }
    return line
  }
}
