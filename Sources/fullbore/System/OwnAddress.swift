import BlobHTTP
import Platform

/// Whether a URL names this computer by its address.
enum OwnAddress {
  /// A name that leads here by DNS is not recognised. This call blocks for a moment.
  static func contains(_ url: HTTPURL) -> Bool {
    if url.isLoopback { return true }
    let host = url.host.hasPrefix("[") ? String(url.host.dropFirst().dropLast()) : url.host
    return LocalAddress.all().contains { $0.text == host }
  }
}
