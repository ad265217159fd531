/// The connections of an event loop.
struct ConnectionTable {
  private var byTag: [UInt64: Connection] = [:]
  private var latest = Acceptor.tag
  /// Connections that have read bytes, which they process after other connections have had their turn.
  private var unread: [Connection] = []
  /// Connections that have sent their last response, the oldest first.
  private var lingering: [Connection] = []
  private let mostLingering: Int

  init(mostLingering: Int) { self.mostLingering = mostLingering }

  var isEmpty: Bool { byTag.isEmpty }
  var all: Dictionary<UInt64, Connection>.Values { byTag.values }
  subscript(tag: UInt64) -> Connection? { byTag[tag] }

  /// A tag that no connection of this loop has had.
  mutating func newTag() -> UInt64 {
    latest += 1
    return latest
  }

  mutating func add(_ connection: Connection) { byTag[connection.tag] = connection }

  /// Returns false if the connection was removed before.
  mutating func remove(_ connection: Connection) -> Bool {
    if byTag.removeValue(forKey: connection.tag) == nil { return false }
    if let index = lingering.firstIndex(where: { $0 === connection }) { lingering.remove(at: index) }
    return true
  }

  var hasUnread: Bool { !unread.isEmpty }

  mutating func addUnread(_ connection: Connection) { unread.append(connection) }

  mutating func takeUnread() -> [Connection] {
    defer { unread = [] }
    return unread
  }

  /// Returns the connection to close, if too many linger.
  mutating func addLingering(_ connection: Connection) -> Connection? {
    lingering.append(connection)
    return lingering.count > mostLingering ? lingering[0] : nil
  }

  /// The connection that is least needed; nil: each of them is needed.
  func leastNeeded(at now: ContinuousClock.Instant) -> Connection? {
    let idle = all.compactMap { connection in connection.timer.yieldsFrom.map { (connection, from: $0) } }
    guard let (connection, from) = idle.min(by: { $0.from < $1.from }), from <= now, connection.mayYield else {
      return nil
    }
    return connection
  }
}
