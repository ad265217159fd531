import BlobHTTP
import BlobServer
import Blobs

/// The embedded `Server` with its own folder.
public final class ServedFolder: ProtocolPeer {
  /// The folder that the server serves. It is deleted when this object is deallocated.
  public let folder: BytePath
  public let endpoint: HTTPURL
  private let scratch: ScratchFolder
  private let options: ServerOptions
  private let server: Monitor<Server?>

  /// Starts a server with default options on a free port.
  public convenience init() throws { try self.init { _ in } }

  /// `change` modifies the options, for example a token or limits.
  public init(_ change: (inout ServerOptions) -> Void) throws {
    scratch = try ScratchFolder()
    folder = scratch.path
    // A short timeout, so that a client that disappears does not delay a test.
    var options = ServerOptions(folder: folder, port: 0, idleTimeout: .seconds(3))
    change(&options)
    let server = try Server(options)
    options.port = server.port
    self.options = options
    endpoint = HTTPURL(server.url)!
    self.server = Monitor(server)
  }

  deinit { stop() }

  public func contents(of name: BytePath) -> [UInt8]? { scratch.read(name) }

  public func names() -> [BytePath] { scratch.names(in: "").filter { $0 != ".fullbore" } }

  public func unfinished() -> Int64 {
    scratch.names(in: ".fullbore").filter { $0.description.hasSuffix(".data") }
      .reduce(0) { $0 + scratch.size(of: BytePath(".fullbore").appending($1)) }
  }

  public func restart() throws {
    server.update { $0.take() }?.stop(grace: .zero)
    let again = try Server(options)
    server.update { $0 = again }
  }

  public func stop() {
    server.update { $0.take() }?.stop(grace: .zero)
    scratch.remove()
  }
}
