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
    var room = [CChar](repeating: 0, count: 256)
    let host =
      gethostname(&room, room.count - 1) == 0 ? room.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } : ""
    let isHost = !host.isEmpty && host.utf8.allSatisfy { isPartOfName($0) }
    let local = LocalAddress.all().map(\.text)
    let named = ["0.0.0.0", "::"].contains(listen.address) ? [] : [listen.address]
    let hosts = isHost ? [host] + (host.contains(".") ? [] : ["\(host).local"]) : []
    var seen: Set<String> = []
    return (["localhost", "127.0.0.1"] + hosts + named + local).filter { seen.insert($0).inserted }
  }

  private static func isPartOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }
}
