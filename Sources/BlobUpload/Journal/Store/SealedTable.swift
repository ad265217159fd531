import BlobSQLite
import Blobs

/// The table `sealed`: what is known of the ciphertext of uploads that are done, so that a check can compare it with the file at
/// the destination. The keys of these files are forgotten.
struct SealedTable {
  let database: Database

  // Since version 14. `algorithm`: of the digest.
  static let schema =
    "CREATE TABLE IF NOT EXISTS sealed(upload INTEGER PRIMARY KEY, digest BLOB, version TEXT, algorithm TEXT);"

  // For versions 14 to 18, whose digests are of SHA-256.
  static let addedAlgorithm = """
    ALTER TABLE sealed RENAME COLUMN sha256 TO digest;
    ALTER TABLE sealed ADD COLUMN algorithm TEXT;
    UPDATE sealed SET algorithm = 'sha256' WHERE digest IS NOT NULL;
    """

  /// Must be called inside a transaction.
  func keep(_ content: SealedContent, of upload: Int64) throws(SQLiteError) {
    let insert = try database.statement(
      "INSERT OR REPLACE INTO sealed(upload, digest, version, algorithm) VALUES(?1, ?2, ?3, ?4)")
    try insert.bind(1, upload)
    try insert.bind(2, content.digest?.bytes)
    try insert.bind(3, content.version)
    try insert.bind(4, content.digest?.algorithm.name)
    try insert.run()
  }

  /// The contents of those uploads that have a row, by their ids.
  func contents(of uploads: [Int64]) throws(SQLiteError) -> [Int64: SealedContent] {
    let select = try database.statement(
      "SELECT upload, digest, version, algorithm FROM sealed WHERE upload IN (SELECT value FROM json_each(?1))")
    defer { select.reset() }
    try select.bind(1, JSONColumn.list(uploads))
    var contents: [Int64: SealedContent] = [:]
    while try select.step() {
      contents[select.int(0)] = SealedContent(Self.digest(select.blob(1), select.text(3)), version: select.text(2))
    }
    return contents
  }

  /// nil: there is none, or it is of an algorithm that this program does not know.
  private static func digest(_ value: [UInt8]?, _ algorithm: String?) -> DigestValue? {
    guard let value, let algorithm = DigestAlgorithm.all.first(where: { $0.name == algorithm }) else { return nil }
    return DigestValue(algorithm, value)
  }
}
