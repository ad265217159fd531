/// The address on which `serve` listens: `127.0.0.1:8080`, `[::1]:0`, `localhost:8080`; `:8080` is every IPv4 address.
struct ListenAddress: Sendable, Hashable {
  /// The address without brackets.
  let address: String
  /// 0: any free port.
  let port: UInt16

  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var address = text[..<colon]
    if address.hasPrefix("[") && address.hasSuffix("]") {
      address = address.dropFirst().dropLast()
    } else if address.contains(":") {
      return nil
    }
    // The resolver knows the last two as every address, but nobody can open a link with them.
    if text.hasPrefix(":") || address == "*" || address == "0" { address = "0.0.0.0" }
    if address.isEmpty { return nil }
    self.address = String(address)
    self.port = port
  }

  /// Only programs on this machine can connect.
  var isLoopback: Bool {
    address == "localhost" || address == "::1"
      || address.hasPrefix("127.") && address.allSatisfy { "0123456789.".contains($0) }
  }
}
