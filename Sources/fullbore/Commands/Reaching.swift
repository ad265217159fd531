import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs

/// A destination that has responded, or should respond while files are sent, and the part of it that the journal
/// stores.
struct Reached: Sendable {
  var destination: UploadDestination
  var s3: S3Location?
}

extension Reached {
  /// Connects to the destination of a push as the user gave it.
  init(
    _ destination: Destination, _ connection: ConnectionOptions, checksum: Digest.Algorithm?,
    form: FormOptions = FormOptions(), isStream: Bool = false, overwrites: Bool = true,
    checks: Bool = false, telling outage: OutageMonitor? = nil, over transport: any Transport
  ) async throws(UploadError) {
    let headers = try await connection.fields(for: destination.endpoint)
    guard let s3 = destination.s3 else {
      var settings = ProtocolSettings()
      (settings.checksum, settings.form, settings.isStream) = (checksum, try form.postNow(), isStream)
      (settings.asksForNames, settings.asksServer) = (!overwrites, checks)
      do throws(UploadError) {
        self.destination = try await UploadDestination.discover(
          destination.endpoint,
          speaking: KnownProtocols.discovery(destination.protocolName, settings, at: destination.endpoint),
          headers: headers, rereading: connection.rereading(for: destination.endpoint), retry: connection.retryFirst,
          retrying: outage?.noteRetry, over: transport)
      } catch {
        throw await connection.explained(error, at: destination.endpoint)
      }
      self.destination.account = connection.account
      return
    }
    let access = try Self.access { () throws(UsageError) in try S3Access(bucket: s3.bucket, connection.s3) }
    self.destination = try await UploadDestination.s3Expected(
      access.address, prefix: s3.prefix, signer: access.signer, options: connection.s3.objects(checksum),
      headers: headers, retry: connection.retryFirst,
      retrying: outage?.noteRetry, over: transport)
    self.s3 = access.place(connection.s3)
  }

  /// Connects to the destination of an earlier push; `connection` must be completed from `kept`.
  init(
    _ kept: JournalDestination, _ connection: ConnectionOptions, telling outage: OutageMonitor? = nil,
    over transport: any Transport
  ) async throws(UploadError) {
    guard let endpoint = HTTPURL(kept.endpoint) else {
      throw UploadError(.giveUp, .journal, "the journal has no usable URL: '\(kept.endpoint)'")
    }
    let headers = try await connection.fields(for: endpoint)
    let checksum = kept.checksum.flatMap { Digest.Algorithm($0) }
    guard let place = kept.s3 else {
      var settings = ProtocolSettings()
      (settings.checksum, settings.asksForNames) = (checksum, !kept.overwrite)
      if let form = kept.form { settings.form = try FormOptions(form).postNow() }
      destination = try await UploadDestination.discover(
        endpoint, speaking: KnownProtocols.discovery(kept.protocolName, settings, at: endpoint), headers: headers,
        rereading: connection.rereading(for: endpoint), retry: connection.retryFirst,
        retrying: outage?.noteRetry, over: transport)
      destination.account = connection.account
      return
    }
    let access = try Self.access { () throws(UsageError) in try S3Access(place, connection.s3) }
    var options = connection.s3
    (options.storageClass, options.metadata, options.encryption) = (
      place.storageClass, place.metadata, place.encryption
    )
    destination = try await UploadDestination.s3(
      access.address, prefix: kept.s3Prefix ?? [], signer: access.signer, options: options.objects(checksum),
      headers: headers, retry: connection.retryFirst,
      retrying: outage?.noteRetry, over: transport)
    s3 = access.place(options)
  }

  private static func access(_ body: () throws(UsageError) -> S3Access) throws(UploadError) -> S3Access {
    do { return try body() } catch { throw UploadError(.giveUp, .destination, error.message) }
  }
}

extension S3Options {
  /// Other checksums than those of S3 were rejected when the options were read.
  fileprivate func objects(_ checksum: Digest.Algorithm?) -> S3Multipart.Options {
    let checksum = checksum.flatMap { Digest.Algorithm.s3.contains($0) ? $0 : nil }
    return S3Multipart.Options(
      storageClass: storageClass, metadata: metadata, checksum: checksum ?? .crc32c, encryption: encryption)
  }
}

extension PushOptions {
  /// Whether a server that is sent plain PUTs is asked what else it can do. The digest of a sealed file, whose key is
  /// forgotten, is kept in the form that the server tells, or not at all.
  var asksServer: Bool { checks || seal.sealing != nil }
}
