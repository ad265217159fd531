import Platform

/// A numeric IPv4 or IPv6 address.
package struct IPAddress: Sendable, Hashable {
  /// 4 bytes or 16 bytes.
  private let bytes: [UInt8]

  /// Accepts IPv6 with or without brackets; nil for a host name.
  package init?(_ text: some StringProtocol) {
    let isBracketed = text.first == "[" && text.last == "]"
    let text = isBracketed ? String(text.dropFirst().dropLast()) : String(text)
    let isLong = text.utf8.contains(UInt8(ascii: ":"))
    var bytes = [UInt8](repeating: 0, count: isLong ? 16 : 4)
    guard inet_pton(isLong ? AF_INET6 : AF_INET, text, &bytes) == 1 else { return nil }
    self.init(bytes: bytes)
  }

  /// 4 bytes or 16 bytes, in network byte order.
  package init(bytes: [UInt8]) {
    // An IPv4-mapped IPv6 address. RFC 4291 §2.5.5.2.
    let isCoated =
      bytes.count == 16 && bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
    self.bytes = isCoated ? Array(bytes[12...]) : bytes
  }

  /// 127.0.0.0/8 or ::1.
  package var isLoopback: Bool { bytes.count == 4 ? bytes[0] == 127 : bytes == Array(repeating: 0, count: 15) + [1] }

  /// Whether `entry` is this address, or a network (`10.0.0.0/8`) that contains it.
  package func isWithin(_ entry: some StringProtocol) -> Bool {
    let parts = entry.split(separator: "/", omittingEmptySubsequences: false)
    guard let network = IPAddress(parts[0]), network.bytes.count == bytes.count else { return false }
    if parts.count == 1 { return network == self }
    guard parts.count == 2, let bits = Int(parts[1]), 0...bytes.count * 8 ~= bits else { return false }
    return (0..<bits).allSatisfy { bit in
      (bytes[bit / 8] ^ network.bytes[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0
    }
  }
}

extension HTTPURL {
  /// Whether the host is this machine: `localhost`, a name in `.localhost` (RFC 6761 §6.3), 127.0.0.0/8 or [::1].
  public var isLoopback: Bool {
    let name = host.hasSuffix(".") ? host.dropLast() : host[...]
    return IPAddress(host)?.isLoopback ?? (name == "localhost" || name.hasSuffix(".localhost"))
  }
}
