import BlobClient
import BlobCrypto
import BlobHTTP
import BlobServer
import BlobServerS3
import BlobUpload
import Blobs
import Platform

/// `serve --to s3://…`: files are stored in a bucket, and the records of uploads in a folder of this computer or in a
/// database.
struct ServeBucket: Sendable {
  private let s3: Destination.S3Name
  private let options: S3Options
  private enum State {
    case folder(BytePath)
    /// The URL may have a password.
    case database(String)
  }
  private let state: State
  /// `s3://BUCKET/PREFIX/`.
  let place: BytePath

  static let declared: [OptionDeclaration] =
    [
      .value("to", "s3://BUCKET/PREFIX/", "store the files there, and none in a folder of this computer"),
      .value("state", "FOLDER", "where --to keeps what is unfinished; or postgres://USER@HOST/DB, for several servers"),
    ] + S3Options.declared

  /// nil: `--to` was not given.
  init?(_ arguments: Arguments) throws(UsageError) {
    options = try S3Options(arguments)
    guard let given = arguments.value("to") else {
      if arguments.value("state") != nil { throw UsageError("--state belongs to --to") }
      if options.areGiven { throw UsageError("--endpoint, --region, --profile and --addressing belong to --to") }
      return nil
    }
    if !arguments.operands.isEmpty { throw UsageError("--to and FOLDER exclude each other") }
    let destination = try Destination(given, options)
    guard let s3 = destination.s3, destination.isFolder else {
      throw UsageError(
        "--to '\(shown(given.withoutSecrets))': wanted s3://BUCKET/ or s3://BUCKET/PREFIX/, with a slash at its end")
    }
    self.s3 = s3
    place = BytePath(Array("s3://\(s3.bucket)/".utf8) + s3.prefix)
    if let given = arguments.value("state") {
      if let url = try Self.database(given, arguments) {
        state = .database(url)
      } else {
        state = .folder(try ServeCommand.folder(given))
      }
    } else {
      guard let folder = stateFolder() else {
        throw UsageError("there is no home folder for the state: give --state FOLDER")
      }
      // Servers for different places run at the same time.
      let place = SHA256.hex(of: Array(destination.endpoint.text.utf8)).prefix(16)
      state = .folder(try Self.make(folder.appending("serve").appending(BytePath(String(place)))))
    }
  }

  /// The folder whose name is not for clients: that for the records, or the place.
  var folder: BytePath { if case .folder(let folder) = state { folder } else { place } }

  /// nil: the state is not in a database.
  private static func database(_ given: BytePath, _ arguments: Arguments) throws(UsageError) -> String? {
    guard let url = databaseURL(given) else { return nil }
    if arguments.value("max-total") != nil {
      throw UsageError("--max-total and --state postgres://… exclude each other: no server knows what the others store")
    }
    return url
  }

  private static func make(_ folder: BytePath) throws(UsageError) -> BytePath {
    var path = BytePath("/")
    for name in folder.bytes.split(separator: UInt8(ascii: "/")) {
      path = path.appending(BytePath(name))
      if path.withCString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
        throw UsageError("\(shown(path)): \(String(cString: strerror(errno))); give --state FOLDER")
      }
    }
    return path
  }

  /// Asks the bucket whether it is there, and opens the store.
  func open(_ server: ServerOptions) async throws(ServerError) -> S3Store {
    // A part that arrives slowly keeps its connection, so each upload may need one.
    let transport = SocketTransport(SocketTransport.Options(connections: 512, adapts: false, uploadBuffer: 16 << 10))
    let destination: UploadDestination
    do throws(UploadError) {
      destination = try await find(over: transport)
    } catch {
      throw ServerError("\(shown(place)): \(error.message)")
    }
    return try await BlockingPool.shared.run { [state] () throws(ServerError) in
      let records: any RecordKeeping =
        switch state {
        case .folder(let folder): try FolderRecords(in: folder)
        case .database(let url): try PostgresRecords(url, for: destination, over: transport)
        }
      return try S3Store(
        destination, over: transport, records, expire: server.expire, maxTotal: server.maxTotal,
        conceals: server.reading == .nothing, isReadOnly: server.isReadOnly)
    }
  }

  private func find(over transport: SocketTransport) async throws(UploadError) -> UploadDestination {
    let access: S3Access
    do throws(UsageError) { access = try S3Access(bucket: s3.bucket, options) } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
    return try await UploadDestination.s3(access.address, prefix: s3.prefix, signer: access.signer, over: transport)
  }
}
