import Platform

/// User, password, host and port of a URL. RFC 3986 §3.2.
package struct URLAuthority {
  /// The percent-decoded user; nil if there is no `@`.
  package let user: String?
  /// The percent-decoded password; nil if no colon follows the user.
  package let password: String?
  /// A name as written, an IPv4 address of four decimal numbers, or an IPv6 address in brackets in its shortest form.
  package let host: String
  /// 1 to 65,535; nil if the URL has none.
  package let port: Int?

  /// nil if the host or the port is invalid, or the host is empty.
  package init?(_ text: Substring) {
    var rest = text.utf8[...]
    if let end = rest.lastIndex(of: UInt8(ascii: "@")) {
      let parts = rest[..<end].split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
      guard let user = Self.decoded(parts[0]) else { return nil }
      self.user = user
      if parts.count == 2 {
        guard let password = Self.decoded(parts[1]) else { return nil }
        self.password = password
      } else {
        password = nil
      }
      rest = rest[rest.index(after: end)...]
    } else {
      (user, password) = (nil, nil)
    }
    var port = rest[rest.endIndex...]
    // The colons of an IPv6 address are inside its brackets.
    if let colon = rest.lastIndex(of: UInt8(ascii: ":")), !rest[colon...].contains(UInt8(ascii: "]")) {
      port = rest[rest.index(after: colon)...]
      rest = rest[..<colon]
    }
    guard let host = Self.host(Substring(rest)) else { return nil }
    self.host = host
    if port.isEmpty {
      self.port = nil
    } else {
      guard port.allSatisfy(\.isASCIIDigit), let number = Int(Substring(port)), 1...65535 ~= number else { return nil }
      self.port = number
    }
  }

  /// nil if the text is not UTF-8, or contains NUL.
  private static func decoded(_ text: Substring.UTF8View) -> String? {
    guard let text = String(validating: PercentCoding.decoded(text), as: UTF8.self), !text.utf8.contains(0) else {
      return nil
    }
    return text
  }

  private static func host(_ text: Substring) -> String? {
    if text.first == "[" { return address6(text) }
    guard let name = text.utf8.contains(UInt8(ascii: "%")) ? decodedName(text) : String(text), !name.isEmpty,
      name.utf8.allSatisfy({ !$0.isForbiddenInHost })
    else { return nil }
    return IPv4Text.isAddress(name) ? IPv4Text.canonical(name) : name
  }

  private static func decodedName(_ text: Substring) -> String? {
    PercentCoding.decode(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// An IPv6 address in brackets. A zone (`%eth0`) is refused, because it is valid on one machine only.
  private static func address6(_ text: Substring) -> String? {
    guard text.last == "]", text.utf8.count > 2 else { return nil }
    var address = in6_addr()
    guard inet_pton(AF_INET6, String(text.dropFirst().dropLast()), &address) == 1 else { return nil }
    var name = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(AF_INET6, &address, &name, socklen_t(name.count)) != nil else { return nil }
    return "[\(String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))]"
  }
}

extension UInt8 {
  /// A byte that no host name contains. A colon ends the name.
  fileprivate var isForbiddenInHost: Bool {
    self <= 0x20 || self == 0x7F || "\"#$%&'()*+,/:;<=>?@[\\]^`{|}!".utf8.contains(self)
  }
}

/// IPv4 addresses in the forms that resolvers accept: one to four numbers, decimal, octal (`0177`) or hexadecimal
/// (`0x7f`), of which the last fills the remaining bytes. Browsers and libcurl do the same: "IPv4 parser" of the WHATWG
/// URL Standard.
private enum IPv4Text {
  /// Whether the name ends in a number, so that it must be an address.
  static func isAddress(_ name: String) -> Bool {
    guard let last = labels(of: name).last, !last.isEmpty else { return false }
    return last.utf8.allSatisfy(\.isASCIIDigit) || number(last) != nil
  }

  /// The address as four decimal numbers; nil if the name ends in a number but is not an address.
  static func canonical(_ name: String) -> String? {
    let labels = labels(of: name)
    let numbers = labels.compactMap(number)
    guard numbers.count == labels.count, 1...4 ~= numbers.count else { return nil }
    let (first, last) = (numbers.dropLast(), numbers.last!)
    guard first.allSatisfy({ $0 < 256 }), last < 1 << UInt64(8 * (5 - numbers.count)) else { return nil }
    let address = first.enumerated().reduce(last) { $0 | $1.element << UInt64(8 * (3 - $1.offset)) }
    return [24, 16, 8, 0].map { String(address >> $0 & 255) }.joined(separator: ".")
  }

  /// Splits a name at its dots, without the empty root label at the end.
  private static func labels(of name: String) -> [Substring] {
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    return labels.count > 1 && labels.last == "" ? labels.dropLast() : labels
  }

  private static func number(_ label: Substring) -> UInt64? {
    // `UInt64(_:radix:)` also accepts a sign.
    guard let first = label.utf8.first, first.isASCIIDigit else { return nil }
    if label.lowercased().hasPrefix("0x") {
      let digits = label.dropFirst(2)
      if digits.isEmpty { return 0 }
      return digits.utf8.allSatisfy({ $0.hexValue != nil }) ? UInt64(digits, radix: 16) : nil
    }
    guard label.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
    return label.utf8.count > 1 && first == UInt8(ascii: "0") ? UInt64(label, radix: 8) : UInt64(label)
  }
}
