import BlobHTTP
import Blobs
import Synchronization

/// Knows which uploads are arriving, and from whom. Its lock is taken when a request begins or ends to bring bytes, and not
/// for each piece of them.
final class ActiveUploads: Sendable {
  private struct Entry {
    let sender: Sender?
    let path: ServedPath
    /// Where the request's bytes begin in the upload.
    let start: Int64
    let length: Int64?
    /// Bytes that the request has brought.
    let bytes: Counter
  }
  private struct Client {
    /// Bytes of the requests that have ended.
    var bytes: Int64 = 0
    var requests = 0
    var ended = ContinuousClock.now
  }
  private struct State {
    var entries: [Int: Entry] = [:]
    var clients: [Sender?: Client] = [:]
    var next = 0
  }
  private let state = Mutex(State())

  /// A client is listed for this time after its last request: it may be about to send the next file.
  private static let pause = Duration.seconds(2)
  /// If nobody asks for the list, more clients than these are forgotten as soon as they send nothing.
  private static let mostIdle = 64
  private static let mostUploads = 20

  /// Lists an upload until the returned meter is released. `start`: the first byte that the request brings.
  func begin(_ path: ServedPath, from start: Int64 = 0, length: Int64?, by sender: Sender?) -> UploadMeter {
    let bytes = Counter()
    let number = state.withLock { state in
      state.next += 1
      state.entries[state.next] = Entry(sender: sender, path: path, start: start, length: length, bytes: bytes)
      if state.clients[sender] == nil, state.clients.count >= Self.mostIdle {
        state.clients = state.clients.filter { $0.value.requests > 0 }
      }
      state.clients[sender, default: Client()].requests += 1
      return state.next
    }
    return UploadMeter(number, bytes, self)
  }

  func begin(_ record: UploadRecord, from start: Int64, by sender: Sender?) -> UploadMeter {
    begin(record.namedTarget, from: start, length: record.isPart ? nil : record.length, by: sender)
  }

  fileprivate func end(_ number: Int) {
    state.withLock { state in
      guard let entry = state.entries.removeValue(forKey: number) else { return }
      state.clients[entry.sender]?.requests -= 1
      state.clients[entry.sender]?.bytes += entry.bytes.load()
      state.clients[entry.sender]?.ended = .now
    }
  }

  /// The clients that send, in the order of their names, so that each keeps its place from one call to the next.
  var senders: [ActiveSender] {
    let now = ContinuousClock.now
    let (entries, clients) = state.withLock { state in
      state.clients = state.clients.filter { $0.value.requests > 0 || now - $0.value.ended < Self.pause }
      return (Array(state.entries.values), state.clients)
    }
    let running = Dictionary(grouping: entries, by: \.sender)
    return clients.map { sender, client in
      let entries = running[sender] ?? []
      let uploads = Self.uploads(entries)
      return ActiveSender(
        sender: sender, bytesReceived: entries.reduce(client.bytes) { $0.addingClamped($1.bytes.load()) },
        uploads: Array(uploads.prefix(Self.mostUploads)), count: uploads.count)
    }.sorted { Self.order($0.sender) < Self.order($1.sender) }
  }

  /// The largest upload first. Parts of one file that arrive at once are one upload.
  private static func uploads(_ entries: [Entry]) -> [ActiveUpload] {
    Dictionary(grouping: entries, by: \.path).map { path, entries in
      ActiveUpload(
        path: BytePath(path.bytes),
        received: entries.reduce(0) { $0.addingClamped($1.start).addingClamped($1.bytes.load()) },
        length: entries.count == 1 ? entries[0].length : nil)
    }.sorted { ($1.length ?? $1.received, $0.path) < ($0.length ?? $0.received, $1.path) }
  }

  private static func order(_ sender: Sender?) -> (String, String) { (sender?.address ?? "", sender?.agent ?? "") }
}

/// Counts the bytes that one request brings for an upload. The upload is listed as long as this object exists.
final class UploadMeter: Sendable {
  private let number: Int
  private let bytes: Counter
  private let home: ActiveUploads

  fileprivate init(_ number: Int, _ bytes: Counter, _ home: ActiveUploads) {
    (self.number, self.bytes, self.home) = (number, bytes, home)
  }

  func add(_ count: Int) { bytes.add(Int64(count)) }

  deinit { home.end(number) }
}
