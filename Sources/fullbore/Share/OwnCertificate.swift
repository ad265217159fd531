import BlobServer
import Blobs
import Platform

/// The certificate of `serve --tls self`, which is kept for later runs, because a browser remembers that a person has
/// accepted it.
enum OwnCertificate {
  /// Blocks while a new one is made.
  static func prepare(for listen: ListenAddress) throws(ServerError) -> SelfSignedCertificate {
    guard let folder = stateFolder() else {
      throw ServerError("there is no home folder for the certificate: set HOME, or give --tls-cert and --tls-key")
    }
    let path = folder.appending("tls.pem")
    path.makeFolders()
    return try SelfSignedCertificate(at: path, names: names(for: listen))
  }

  /// All names and addresses by which this machine may be reached.
  private static func names(for listen: ListenAddress) -> [String] {
    let host = MulticastName.ownHost()
    let local = LocalAddress.all().map(\.text)
    let named = ["0.0.0.0", "::"].contains(listen.address) ? [] : [listen.address]
    // The name under which this machine is announced has the first label only.
    let hosts = host.map { [$0, $0.prefix { $0 != "." } + ".local"] } ?? []
    var seen: Set<String> = []
    return (["localhost", "127.0.0.1"] + hosts + named + local).filter { seen.insert($0).inserted }
  }
}
