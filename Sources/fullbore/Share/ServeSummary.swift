import BlobServer
import Blobs

/// The last lines of `serve --share` for a person: why it has ended, and what becomes of the uploads that were not finished.
struct ServeSummary {
  let lines: [String]
  /// More uploads than these are only counted.
  private static let most = 20

  init(_ reason: ServeEnd.Reason, _ unfinished: [UnfinishedUpload], cut downloads: [BytePath], expire: Duration) {
    var lines: [String] = []
    switch reason {
    case .signal: break
    case .time: lines.append("The time of --for is over.")
    case .visit: lines.append("The visit is over, as --once wants it.")
    }
    let (kept, lost) = (unfinished.filter(\.isKept), unfinished.filter { !$0.isKept })
    if !kept.isEmpty {
      lines.append("\(Self.count(kept)) not finished:")
      lines += Self.list(kept)
      lines.append(
        "What has arrived of \(kept.count == 1 ? "it" : "them") is kept for \(Self.text(expire)): serve this "
          + "folder again, and whoever sends the same \(kept.count == 1 ? "file" : "files") again goes on there.")
    }
    if !lost.isEmpty {
      lines.append("\(Self.count(lost)) cut, and must be sent from the beginning:")
      lines += Self.list(lost)
    }
    if !downloads.isEmpty {
      lines.append("\(Quantity.plural(downloads.count, "download")) \(downloads.count == 1 ? "was" : "were") cut:")
      lines += Self.list(downloads.map { "  \(shown($0.isEmpty ? "/" : $0))" })
    }
    self.lines = lines
  }

  private static func count(_ uploads: [UnfinishedUpload]) -> String {
    "\(Quantity.plural(uploads.count, "upload")) \(uploads.count == 1 ? "was" : "were")"
  }

  private static func text(_ expire: Duration) -> String {
    let hours = Int(clamping: expire.components.seconds / 3600)
    return hours >= 48
      ? Quantity.plural(hours / 24, "day") : hours > 0 ? Quantity.plural(hours, "hour") : Quantity.text(expire)
  }

  private static func list(_ uploads: [UnfinishedUpload]) -> [String] {
    list(
      uploads.map { upload in
        let whole = upload.length.map { " of \(Quantity.text(bytes: $0))" } ?? ""
        return "  \(shown(upload.path))  \(Quantity.text(bytes: upload.received))\(whole)"
      })
  }

  private static func list(_ lines: [String]) -> [String] {
    Array(lines.prefix(most)) + (lines.count > most ? ["  and \(lines.count - most) more"] : [])
  }
}

extension JSONLine {
  /// The JSON line of an unfinished upload, for programs.
  init(unfinished upload: UnfinishedUpload) {
    self.init("unfinished")
    add(path: upload.path)
    add("received", upload.received)
    if let length = upload.length { add("length", length) }
    add("kept", upload.isKept)
  }
}
