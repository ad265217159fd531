import BlobClient
import BlobCrypto
import BlobHTTP
import BlobServer
import BlobServerS3
import BlobUpload
import Blobs
import Platform

/// `serve --to s3://…`: files are stored in a bucket, and only the records of uploads in a folder of this computer.
struct ServeBucket: Sendable {
  private let s3: Destination.S3Name
  private let options: S3Options
  /// The folder for the records.
  let state: BytePath
  /// `s3://BUCKET/PREFIX/`.
  let place: BytePath

  static let declared: [OptionDeclaration] =
    [
      .value("to", "s3://BUCKET/PREFIX/", "store the files there, and none in a folder of this computer"),
      .value("state", "FOLDER", "with --to: remembers what is unfinished; else below $XDG_STATE_HOME/fullbore/serve"),
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
    if let state = arguments.value("state") {
      self.state = try ServeCommand.folder(state)
    } else {
      guard let folder = stateFolder() else {
        throw UsageError("there is no home folder for the state: give --state FOLDER")
      }
      // Servers for different places run at the same time.
      let place = SHA256.hex(of: Array(destination.endpoint.text.utf8)).prefix(16)
      state = try Self.make(folder.appending("serve").appending(BytePath(String(place))))
    }
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
      try S3Store(
        destination, over: transport, state: state, expire: server.expire, maxTotal: server.maxTotal,
        conceals: server.reading == .nothing)
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
