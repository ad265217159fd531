import BlobServer
import Blobs

/// Who sends what at this moment, and how fast: as lines for a person, and as an object of JSON for a program.
struct ServeProgress {
  private var senders: [ActiveSender] = []
  private var speeds: [Sender?: Speed] = [:]
  /// An object of JSON has no more senders than these.
  private static let most = 100

  /// Call it some times a second. `time`: seconds since any fixed point.
  mutating func update(_ senders: [ActiveSender], at time: Double) {
    self.senders = senders
    var speeds: [Sender?: Speed] = [:]
    for active in senders {
      var speed = self.speeds[active.sender] ?? Speed()
      speed.add(active.bytesReceived, at: time)
      speeds[active.sender] = speed
    }
    self.speeds = speeds
  }

  var isEmpty: Bool { senders.isEmpty }

  /// A line for each client: who it is, its largest file, and its rate. `most`: the number of lines, at least 1.
  func lines(width: Int, most: Int) -> [String] {
    let shown = senders.prefix(senders.count > most ? most - 1 : most)
    let lines = shown.map { line($0, width: width) }
    let rest = senders.count - shown.count
    return rest > 0 ? lines + [fitted("and \(Quantity.plural(rest, "more sender"))", width)] : lines
  }

  private func line(_ active: ActiveSender, width: Int) -> String {
    let name = active.sender?.name ?? "somebody"
    let rate = rate(active).map { [Quantity.text(bytesPerSecond: Double($0))] } ?? []
    guard let upload = active.uploads.first else { return fitted(([name] + rate).joined(separator: "  "), width) }
    var figures = [Self.share(upload)]
    if active.count > 1 { figures.append("and \(Quantity.grouped(active.count - 1)) more") }
    figures += rate
    let rest = figures.joined(separator: "  ")
    let room = max(12, width - columns(of: name) - columns(of: rest) - 4)
    let path = shown(upload.path)
    let file = columns(of: path) <= room ? path : fitted(shown(upload.path.name), room)
    return fitted("\(name)  \(file)  \(rest)", width)
  }

  private static func share(_ upload: ActiveUpload) -> String {
    guard let length = upload.length else { return Quantity.text(bytes: upload.received) }
    return "\(ProgressFigures.percentage(upload.received, of: length)) of \(Quantity.text(bytes: length))"
  }

  /// In bytes per second; nil: it is not known yet.
  private func rate(_ active: ActiveSender) -> Int64? {
    guard let speed = speeds[active.sender], speed.isKnown else { return nil }
    return Int64(clamped: max(0, speed.bytesPerSecond))
  }

  /// The event for programs.
  var json: JSONLine {
    var line = JSONLine("progress")
    line.add("count", senders.count)
    let objects = senders.prefix(Self.most).map { active in
      var object = JSONLine()
      object.add(active.sender)
      if let rate = rate(active) { object.add("bytes_per_second", rate) }
      object.add("count", active.count)
      object.add("uploads", objects: active.uploads.map(Self.json))
      return object
    }
    line.add("senders", objects: objects)
    return line
  }

  private static func json(_ upload: ActiveUpload) -> JSONLine {
    var object = JSONLine()
    object.add(path: upload.path)
    object.add("received", upload.received)
    if let length = upload.length { object.add("length", length) }
    return object
  }
}

extension Sender {
  /// The client in words: what a browser says about its device, and the address.
  var name: String {
    let agent = agent ?? ""
    let devices = ["iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux"]
    let device = devices.first { agent.contains($0) } ?? agent.prefix { $0 != "/" && $0 != " " }.description
    let address = address ?? "a closed connection"
    return device.isEmpty ? address : "\(address) (\(shown(Self.cut(device))))"
  }

  /// Anyone can say anything in `User-Agent`, of any length.
  private static func cut(_ text: String) -> String {
    let most = 60
    let scalars = text.unicodeScalars
    return scalars.count <= most ? text : "\(String(String.UnicodeScalarView(scalars.prefix(most))))…"
  }
}
