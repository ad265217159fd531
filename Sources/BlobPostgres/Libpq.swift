import CPostgres
import Platform

/// The libpq library, which is loaded when it is first needed.
struct Libpq: @unchecked Sendable {
  // The functions are the same for all threads, and do not change.
  var api = cpostgres_api()

  private static let loaded: Result<Libpq, PostgresError> = {
    var library = Libpq()
    guard let missing = cpostgres_load(&library.api) else { return .success(library) }
    return .failure(
      PostgresError(
        "\(String(cString: missing)) is missing: install PostgreSQL's client library (Debian: libpq5)",
        isTemporary: false))
  }()

  static func load() throws(PostgresError) -> Libpq { try loaded.get() }

  /// Throws if libpq does not understand the URL. Its own message may have the password, and is not told.
  func check(_ url: String) throws(PostgresError) {
    var message: UnsafeMutablePointer<CChar>?
    let options = api.conninfo_parse(url, &message)
    if let message { api.free_memory(message) }
    guard let options else {
      throw PostgresError("wanted postgres://USER@HOST/DATABASE, which libpq does not find in it", isTemporary: false)
    }
    api.conninfo_free(options)
  }
}
