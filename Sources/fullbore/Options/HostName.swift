import BlobHTTP
import Blobs
import Platform

extension HTTPURL {
  /// The URL with its host in ASCII letters, as the name system, certificates and the field `Host` have it: `bücher.example`
  /// is `xn--bcher-kva.example`. RFC 5890. Credentials are compared by this form. nil: the host has other letters, and is no
  /// name, or nothing here can write it in ASCII.
  var withASCIIHost: HTTPURL? {
    if host.utf8.allSatisfy({ $0 < 0x80 }) { return self }
    guard let name = InternationalName.ascii(host) else { return nil }
    let isStandard = port == (scheme == "https" ? 443 : 80)
    return HTTPURL("\(scheme)://\(name)\(isStandard ? "" : ":\(port)")\(path)\(query.map { "?\($0)" } ?? "")")
  }

  /// The message for a URL that has no `withASCIIHost`.
  var hostComplaint: String {
    "the name '\(shown(host))' cannot be written in ASCII here, which needs libidn2 and a valid name: give the form that begins "
      + "with xn--"
  }
}

/// Writes names of hosts with letters beyond ASCII in ASCII, by libidn2. The library is part of every system that has libcurl
/// from its distribution. It is loaded when the first such name is met, since most people never have one.
private enum InternationalName {
  private typealias Convert =
    @convention(c) (
      UnsafePointer<CChar>, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, Int32
    ) -> Int32

  /// `IDN2_NFC_INPUT` and `IDN2_NONTRANSITIONAL` of idn2.h.
  private static let flags: Int32 = 1 | 8

  private static func isInName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
      UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  static func ascii(_ name: String) -> String? {
    #if os(Linux)
      guard let library = dlopen("libidn2.so.0", RTLD_NOW), let symbol = dlsym(library, "idn2_to_ascii_8z") else {
        return nil
      }
      var text: UnsafeMutablePointer<CChar>?
      let convert = unsafeBitCast(symbol, to: Convert.self)
      guard name.withCString({ convert($0, &text, flags) }) == 0, let text else { return nil }
      defer { free(text) }
      let ascii = String(cString: text)
      // A letter may stand for a slash or an @, which would make another URL of it.
      return ascii.utf8.allSatisfy(isInName) ? ascii : nil
    #else
      return nil
    #endif
  }
}
