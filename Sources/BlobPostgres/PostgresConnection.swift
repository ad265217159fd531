import Blobs
import CPostgres
import Platform

/// A connection to a PostgreSQL server. Its methods block, so no cooperative thread may call them; one thread at a time uses
/// the connection.
package final class PostgresConnection: @unchecked Sendable {
  // `handle` and `isUsable` are used by one thread at a time. A pool passes the connection on under its lock.
  private let handle: OpaquePointer
  private let library: Libpq
  /// Whether another statement can be sent. After a lost connection or a statement that took too long, this is false.
  package private(set) var isUsable = true

  /// `url`: as libpq takes it; what it leaves out comes from the environment and from files, as for other programs of
  /// PostgreSQL. Blocks for some seconds at most.
  package init(_ url: String) throws(PostgresError) {
    library = try Libpq.load()
    try library.check(url)
    // libpq takes the last value of a setting, so the URL, as "dbname", overrides the settings before it. The server is asked
    // for no notices, because libpq would print them.
    let settings = [
      ("fallback_application_name", "fullbore"), ("connect_timeout", "5"), ("tcp_user_timeout", "10000"),
      ("options", "-c client_min_messages=warning"), ("dbname", url), ("client_encoding", "UTF8"),
    ]
    let names = CStrings(settings.map(\.0)), values = CStrings(settings.map(\.1))
    guard let handle = library.api.connect(names.pointers, values.pointers, 1) else {
      throw PostgresError("libpq has no memory", isTemporary: true)
    }
    self.handle = handle
    // libpq would print notices. One that a failure causes is told with the statement that fails next.
    _ = library.api.set_notice_processor(handle, { _, _ in }, nil)
    if library.api.status(handle) != CPOSTGRES_CONNECTED {
      // Also a wrong password may be temporary: it is changed in two places, one after the other.
      throw failure(isTemporary: true)
    }
  }

  deinit { library.api.finish(handle) }

  private func failure(isTemporary: Bool) -> PostgresError {
    PostgresError(library.api.error_message(handle).map { String(cString: $0) } ?? "", isTemporary: isTemporary)
  }

  /// Runs one statement and returns its rows as text; nil is NULL. `limit`: how long the server may take; after that the
  /// connection cannot be used any more, and whether the statement had an effect is not known.
  @discardableResult package func query(
    _ statement: String, _ values: [String?] = [], within limit: Duration = .seconds(10)
  ) throws(PostgresError) -> [[String?]] {
    let texts = CStrings(values)
    guard library.api.send(handle, statement, Int32(values.count), nil, texts.pointers, nil, nil, 0) == 1 else {
      throw broken()
    }
    let deadline = ContinuousClock.now + limit
    var rows: [[String?]] = []
    var error: PostgresError?
    while let result = try nextResult(until: deadline) {
      defer { library.api.clear(result) }
      switch library.api.result_status(result) {
      case Int32(CPOSTGRES_COMMAND_OK): break
      case Int32(CPOSTGRES_TUPLES_OK): rows = self.rows(of: result)
      default: error = refusal(result)
      }
    }
    if library.api.status(handle) != CPOSTGRES_CONNECTED { isUsable = false }
    if let error { throw error }
    return rows
  }

  private func rows(of result: OpaquePointer) -> [[String?]] {
    let columns = library.api.columns(result)
    return (0..<library.api.rows(result)).map { row in
      (0..<columns).map { column in
        if library.api.is_null(result, row, column) != 0 { return nil }
        return library.api.value(result, row, column).map { String(cString: $0) }
      }
    }
  }

  private func refusal(_ result: OpaquePointer) -> PostgresError {
    let message = library.api.result_message(result).map { String(cString: $0) } ?? ""
    guard let state = library.api.error_field(result, Int32(CPOSTGRES_SQLSTATE)) else {
      // The error is not the server's: the connection was lost.
      isUsable = false
      return PostgresError(message, isTemporary: true)
    }
    return PostgresError(message, state: String(cString: state))
  }

  /// nil: the statement has no further result.
  private func nextResult(until deadline: ContinuousClock.Instant) throws(PostgresError) -> OpaquePointer? {
    while library.api.is_busy(handle) != 0 {
      if !waitForBytes(deadline - .now) {
        isUsable = false
        throw PostgresError("the database has not answered in time", isTemporary: true)
      }
      if library.api.consume(handle) != 1 { throw broken() }
    }
    return library.api.result(handle)
  }

  private func broken() -> PostgresError {
    isUsable = false
    return failure(isTemporary: true)
  }

  /// Returns false if none came within `limit`.
  private func waitForBytes(_ limit: Duration) -> Bool {
    var socket = pollfd(fd: library.api.socket(handle), events: Int16(POLLIN), revents: 0)
    let milliseconds = Int32(clamping: limit.nanoseconds / 1_000_000)
    return socket.fd >= 0 && poll(&socket, 1, max(0, milliseconds)) != 0
  }

  /// Waits for notifications of the channels for which `LISTEN` was sent, and returns their texts; empty: none came within
  /// `limit`.
  package func notifications(within limit: Duration) throws(PostgresError) -> [String] {
    if library.api.consume(handle) != 1 { throw broken() }
    var texts = pending()
    if texts.isEmpty, waitForBytes(limit) {
      if library.api.consume(handle) != 1 { throw broken() }
      texts = pending()
    }
    return texts
  }

  private func pending() -> [String] {
    var texts: [String] = []
    while let notification = library.api.notification(handle) {
      texts.append(String(cString: notification.pointee.text))
      library.api.free_memory(notification)
    }
    return texts
  }
}

/// C strings that live as long as this object.
private final class CStrings {
  /// Ends with nil.
  let pointers: UnsafeMutablePointer<UnsafePointer<CChar>?>
  private let count: Int

  init(_ texts: [String?]) {
    count = texts.count
    pointers = .allocate(capacity: count + 1)
    for (number, text) in texts.enumerated() {
      (pointers + number).initialize(to: text.flatMap { UnsafePointer(strdup($0)) })
    }
    (pointers + count).initialize(to: nil)
  }

  deinit {
    for number in 0..<count { free(UnsafeMutablePointer(mutating: pointers[number])) }
    pointers.deallocate()
  }
}
