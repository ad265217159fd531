import BlobHTTP

/// The protocols that a destination can name, as in `put+http://host/`. Every protocol of this module has its line here.
package enum KnownProtocols {
  package static let all: [any UploadProtocol] = [
    PlainPut(), Tus(), IETFResumable(), WebDAV(), FormPost(), CloudStorage(),
  ]

  /// The protocol called `name`, with its own settings; nil: there is none.
  package static func named(_ name: String) -> (any UploadProtocol)? { all.first { $0.name == name } }
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
