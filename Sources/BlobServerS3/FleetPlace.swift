import BlobHTTP
import BlobPostgres
import BlobServer
import BlobUpload
import Blobs

/// The name under which the database has the uploads of a bucket and prefix, however each server spells the endpoint.
///
/// An object in the bucket has the name. The first server makes it up at random, so two buckets with the same name, at
/// two endpoints, are two places.
final class FleetPlace: Sendable {
  let name: String
  private let bucket: S3Bucket
  private static let longest: Int64 = 4096

  /// Reads the name from the bucket, or stores one there. Blocks.
  init(_ bucket: S3Bucket, _ pool: PostgresPool) throws(ServerError) {
    self.bucket = bucket
    if let there = try Self.read(bucket) { name = there } else { name = try Self.make(bucket, pool) }
  }

  private static func url(_ bucket: S3Bucket) -> HTTPURL {
    bucket.place.appending(pathBytes: Array("\(ServedPath.storeName)/fleet".utf8))
  }

  /// nil: there is no such object.
  private static func read(_ bucket: S3Bucket) throws(ServerError) -> String? {
    let url = url(bucket)
    let head = try bucket.wait { s3, context async throws(UploadError) in try await s3.head(of: url, context) }
    guard let head else { return nil }
    var bytes: [UInt8] = []
    if 1...longest ~= head.length {
      try S3Content(bucket: bucket, url: url, tag: head.tag).read(0..<head.length) { bytes += $0 }
    }
    guard let name = String(validating: bytes, as: UTF8.self), !name.isEmpty, !name.utf8.contains(where: { $0 < 32 })
    else { throw ServerError("\(url) is not the name of a place that a server has stored: delete it") }
    return name
  }

  /// Servers that start at the same time wait for each other, because not every bucket knows conditions.
  private static func make(_ bucket: S3Bucket, _ pool: PostgresPool) throws(ServerError) -> String {
    let connection: PostgresConnection
    do throws(PostgresError) {
      connection = try pool.connect()
      try connection.query("SELECT pg_advisory_lock(7308613709768159843)", within: .seconds(60))
    } catch {
      throw ServerError("the database for the state: \(error.message)")
    }
    // The lock ends with the connection.
    defer { withExtendedLifetime(connection) {} }
    return try store(UploadID.random().description, bucket)
  }

  /// Returns the name that the bucket has then: an earlier one stays.
  private static func store(_ name: String, _ bucket: S3Bucket) throws(ServerError) -> String {
    let url = url(bucket)
    if let there = try read(bucket) { return there }
    let bytes = Array(name.utf8)
    let target = UploadTarget(endpoint: bucket.place, url: url, path: "fleet", length: Int64(bytes.count))
    let request = bucket.start { s3, context async throws(UploadError) in
      let part = Part(number: 1, start: 0, length: Int64(bytes.count), isLast: true)
      _ = try await s3.create(target, first: FirstPart(part, BlobSlice(DataSource(bytes))), context)
    }
    do throws(UploadError) { try request.value() } catch {
      // Another server, with another database, has stored one just now.
      if error.status != 412 { throw ServerError("\(url): \(error.message)") }
    }
    guard let there = try read(bucket) else { throw ServerError("\(url) was stored, and is not there") }
    return there
  }

  /// Stores the name again if somebody has deleted it: otherwise servers that start later would not find the uploads.
  /// Returns a line for the operator; nil: all is well, or it is not known. Blocks.
  func lookAfter() -> String? {
    // If the bucket cannot be reached, a later call asks again.
    guard let there = try? Self.store(name, bucket), there != name else { return nil }
    return
      "\(Self.url(bucket)) has another name than when this server started, so it does not find the uploads of servers that "
      + "have started since: restart it"
  }
}
