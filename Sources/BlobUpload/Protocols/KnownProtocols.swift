import BlobCrypto
import BlobHTTP

/// What the user chose for the protocol of a destination.
package struct ProtocolSettings: Sendable {
  /// Uploads must carry digests of this algorithm, and the server must verify them; nil: no digests are needed.
  package var checksum: Digest.Algorithm?
  /// How to post forms.
  package var form = FormPost()
  /// The end of the source is not known yet.
  package var isStream = false
  /// A server that replaces the content of a name is queried for each name first.
  package var asksForNames = false
  /// A server that is sent plain PUTs is asked what else it can do. It returns digests, for example, or publishes the files
  /// of one photo together.
  package var asksServer = false

  package init() {}

  fileprivate var put: PlainPut {
    var put = PlainPut(checksum: checksum)
    (put.asksFirst, put.asksServer) = (asksForNames, asksServer)
    return put
  }
}

/// The protocols that a destination can name, as in `put+http://host/`. Every protocol of this module has its line here.
package enum KnownProtocols {
  private static let makers: [@Sendable (ProtocolSettings) -> any UploadProtocol] = [
    { $0.put },
    { Tus(checksum: $0.checksum) },
    { IETFResumable(checksum: $0.checksum) },
    { _ in WebDAV() },
    { $0.form },
    { _ in CloudStorage() },
  ]

  private static func all(_ settings: ProtocolSettings) -> [any UploadProtocol] { makers.map { $0(settings) } }

  /// The names, in the order in which messages list them.
  package static var names: [String] { all(ProtocolSettings()).map(\.name) }

  /// The protocol called `name`, with its own settings; nil: there is none.
  package static func named(_ name: String) -> (any UploadProtocol)? {
    all(ProtocolSettings()).first { $0.name == name }
  }

  /// The protocol and the server's URL of a scheme that stands for both, as in `gs://bucket/folder/`; nil: the scheme
  /// stands for none.
  package static func shorthand(_ scheme: String) -> (name: String, server: String)? {
    scheme == CloudStorage.scheme ? (CloudStorage().name, CloudStorage.server) : nil
  }

  /// How a destination that names this protocol is discovered; nil: the server is asked. Throws if there is no such
  /// protocol, or if it cannot do what the settings ask for.
  package static func discovery(
    _ name: String?, _ settings: ProtocolSettings, at endpoint: HTTPURL
  ) throws(UploadError) -> any ProtocolDiscovery {
    guard let name else {
      return NegotiatedProtocol(
        checksum: settings.checksum, isStream: settings.isStream, asksForNames: settings.asksForNames)
    }
    guard let found = all(settings).first(where: { $0.name == name }) else {
      throw UploadError(
        .giveUp, .destination,
        "\(endpoint): there is no protocol \(name); known are \(names.joined(separator: ", "))")
    }
    if settings.checksum != nil, found.traits.checksums.isEmpty {
      throw UploadError(
        .giveUp, .destination, "\(endpoint): \(name) uploads carry no checksums; --verify reads back what arrived")
    }
    return found
  }
}

/// The cause of an error if no file can ever be sent to the destination as the user wrote it: the mistake is in the command,
/// not in the state of the server.
package struct WrongDestination: Error {}

extension UploadError {
  package var isWrongDestination: Bool { cause is WrongDestination }
}

extension UploadDestination {
  /// The reason why a protocol with these traits can send no file to `endpoint` with its query; nil: it can, or there is no
  /// query.
  package static func complaint(ofQueryIn endpoint: HTTPURL, _ traits: UploadTraits) -> String? {
    if endpoint.query == nil { return nil }
    switch traits.queries {
    case .carried: return nil
    case .dropped:
      return "requests go to other URLs than this one, which would not carry the query: give what it says otherwise"
    case .ofOneFile:
      if !endpoint.path.hasSuffix("/") { return nil }
      return
        "the query is for this URL, and files in a folder have URLs of their own, which would not carry it: give the "
        + "URL of one file, or what the query says by --header @FILE"
    }
  }
}
