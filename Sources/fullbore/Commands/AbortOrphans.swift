import BlobClient
import BlobHTTP
import BlobServer
import BlobServerS3
import BlobUpload
import Blobs
import Platform

/// Finds unfinished multipart uploads, and the tails that a receiving server has kept of uploads, lists them, and deletes
/// them.
struct AbortOrphans: Sendable {
  let place: Destination
  let connection: ConnectionOptions
  /// Only what was begun this long ago; nil: all uploads, and no tails.
  let age: Duration?
  let isDryRun: Bool
  /// For uploads in this machine's journal, by their ids at the server: what the user can do with them.
  let known: [String: String]

  func run() async throws(UploadError) -> ExitStatus {
    guard let s3 = place.s3 else { preconditionFailure("the options have seen to it") }
    let transport = SocketTransport(try connection.transportOptions(connections: 1))
    let reached = try await Reached(place, connection, checksum: nil, over: transport)
    let uploadProtocol = reached.destination.uploadProtocol
    let context = UploadContext(reached.destination, over: transport)
    var (count, bytes): (Int, Int64) = (0, 0)
    do throws(UploadError) {
      // Each page is listed before its uploads are deleted: the names of all uploads may not fit into memory.
      try await uploadProtocol.orphans(s3.prefix, at: reached.destination.endpoint, context) {
        (found: [OrphanedUpload]) async throws(UploadError) in
        let orphans = found.filter(isOurs)
        for orphan in orphans { Console.output.write("\(line(orphan))\n") }
        Console.output.flush()
        for orphan in orphans {
          if !isDryRun { try await uploadProtocol.delete(orphan, context) }
          count += 1
          bytes = bytes.addingClamped(orphan.bytes)
        }
      }
    } catch {
      if count > 0 { tellTotal(count, bytes) }
      throw error
    }
    tellTotal(count, bytes)
    if let s3 = uploadProtocol as? S3Multipart { try await endTails(s3, reached.destination, context) }
    return .ok
  }

  /// Deletes the objects of `fullbore serve --to` with bytes that fill no part of their upload yet. The bucket does not say
  /// which uploads go on, so only old ones are deleted.
  private func endTails(
    _ uploadProtocol: S3Multipart, _ destination: UploadDestination, _ context: UploadContext
  ) async throws(UploadError) {
    var folder = place.s3?.prefix ?? []
    if !folder.isEmpty, folder.last != UInt8(ascii: "/") { folder.append(UInt8(ascii: "/")) }
    let hidden = folder + ServedPath.storeName.bytes + [UInt8(ascii: "/")]
    var (count, bytes): (Int, Int64) = (0, 0)
    try await uploadProtocol.objects(in: hidden, at: destination.endpoint, context) {
      (found: [(url: HTTPURL, entry: S3Entry)]) async throws(UploadError) in
      for (url, entry) in found where TailName.isName(entry.name) && (age == nil || isOld(entry.modified)) {
        if age != nil {
          let when = entry.modified.map { ", stored \(Self.date($0))" } ?? ""
          let name = shown(BytePath(hidden + entry.name.bytes))
          Console.output.write("\(name)  a tail of an upload, \(Quantity.text(bytes: entry.length))\(when)\n")
          Console.output.flush()
          if !isDryRun { try await uploadProtocol.delete(url, context) }
        }
        count += 1
        bytes = bytes.addingClamped(entry.length)
      }
    }
    if count == 0 { return }
    let total = "\(Quantity.plural(count, "tail")) of uploads with \(Quantity.text(bytes: bytes))"
    Console.output.write(
      age == nil
        ? "\(total) at a server stay: --older-than says how old they must be, as its --expire.\n"
        : "\(isDryRun ? "" : "Deleted ")\(total).\n")
  }

  private func tellTotal(_ count: Int, _ bytes: Int64) {
    let total = "\(Quantity.plural(count, "forgotten upload")) with \(Quantity.text(bytes: bytes))"
    Console.output.write(count == 0 ? "No forgotten uploads.\n" : "\(isDryRun ? "" : "Deleted ")\(total).\n")
  }

  /// Excludes uploads that a later push can resume, and uploads that are too recent.
  private func isOurs(_ orphan: OrphanedUpload) -> Bool {
    if let remedy = known[orphan.id] {
      Console.output.write("\(line(orphan)); kept: \(shown(remedy))\n")
      return false
    }
    return isOld(orphan.begun)
  }

  /// `begun`: in seconds since 1970; nil: the server does not tell it.
  private func isOld(_ begun: Int64?) -> Bool {
    guard let age, let begun else { return age == nil }
    return begun <= Int64(time(nil)).subtractingClamped(age.components.seconds)
  }

  private func line(_ orphan: OrphanedUpload) -> String {
    let begun = orphan.begun.map { ", begun \(Self.date($0))" } ?? ""
    // S3 permits names of up to 1,024 bytes.
    let isLong = orphan.name.count > 1024
    let name = shown(BytePath(orphan.name.prefix(1024))) + (isLong ? "… (\(orphan.name.count) bytes)" : "")
    return "\(name)  \(orphan.parts) parts, \(Quantity.text(bytes: orphan.bytes))\(begun)"
  }

  private static func date(_ seconds: Int64) -> String {
    var seconds = time_t(seconds)
    var date = tm()
    gmtime_r(&seconds, &date)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return
      "\(date.tm_year + 1900)-\(two(date.tm_mon + 1))-\(two(date.tm_mday)) \(two(date.tm_hour)):\(two(date.tm_min)) UTC"
  }
}
