import BlobHTTP
import CCurl
import Platform

/// The system's trusted certificates.
enum Certificates {
  /// A file with all certificates, or a folder that OpenSSL searches by the hash of a name (c_rehash(1)); nil if it
  /// does not exist or is not to be used.
  ///
  /// From a folder, only the needed certificate is read. The file costs 28 ms and 1 MiB for each worker whose TLS
  /// libcurl does.
  static let places: (file: String?, folder: String?) = {
    guard let easy = curl_easy_init() else { return (nil, nil) }
    defer { curl_easy_cleanup(easy) }
    func place(_ info: CURLINFO) -> String? {
      var path: UnsafePointer<CChar>?
      guard fb_curl_get_string(easy, info, &path) == CURLE_OK, let path else { return nil }
      return String(cString: path)
    }
    let folder = place(CURLINFO_CAPATH)
    return (folder.map(isHashed) == true ? nil : place(CURLINFO_CAINFO), folder)
  }()

  static var areHashed: Bool { places.file == nil && places.folder != nil }

  /// Cipher suites for TLS 1.3, in the order that most programs use. libcurl and OpenSSL prefer 256-bit keys, which are
  /// a tenth slower without benefit. RFC 8446 §9.1.
  static let ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

  private static func isHashed(_ path: String) -> Bool {
    guard let folder = opendir(path) else { return false }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      if isHash(entry.pointee) { return true }
    }
    return false
  }

  /// Whether the name is eight hexadecimal digits and ".0".
  private static func isHash(_ entry: dirent) -> Bool {
    withUnsafeBytes(of: entry.d_name) { name in
      name[..<8].allSatisfy(isxdigit) && name[8] == UInt8(ascii: ".") && name[9] == UInt8(ascii: "0") && name[10] == 0
    }
  }

  private static func isxdigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
  }
}

extension Certificates {
  static func isForAnother(than host: String, _ server: String) -> (TransportError.Code, String) {
    (
      .tls,
      "the certificate of \(server) is not for '\(host)': use the name that it is for, or have one made for this one"
    )
  }

  static func noneShown(by server: String) -> (TransportError.Code, String) {
    (.broken, "\(server) closed the connection during the TLS handshake")
  }

  static func noneKnown(to server: String) -> (TransportError.Code, String) {
    (.tls, "\(server) does not speak TLS: is it http:// instead of https://?")
  }

  /// Describes a failed verification of the certificate of `server` in plain words, for an OpenSSL result code. nil:
  /// OpenSSL's own text says more. x509_vfy.h; X509_STORE_CTX_get_error(3).
  static func problem(_ verdict: Int, _ server: String, caFile: String?) -> (TransportError.Code, String)? {
    let trusted = caFile.map { "in \($0)" } ?? "here"
    switch verdict {
    case 9: return (.tls, "the certificate of \(server) is not valid yet: is the clock of this machine right?")
    case 10:
      return (
        .tls,
        "the certificate of \(server), or one above it, has expired: it has to be renewed there, unless the clock of "
          + "this machine is ahead"
      )
    case 18: return (.untrusted, "the certificate of \(server) is self-signed, and nothing \(trusted) vouches for it")
    case 19, 20, 21, 2:
      return (.untrusted, "the certificate of \(server) comes from an authority that nothing \(trusted) vouches for")
    case 23: return (.tls, "the certificate of \(server) was revoked")
    case 26:
      return (.tls, "the certificate of \(server), or one above it, is not made for servers: it needs another one")
    case 66, 67, 68:
      return (
        .tls,
        "the certificate of \(server), or one above it, has a key or a signature that is too weak: it needs another one"
      )
    default: return nil
    }
  }

  /// Describes a failed handshake with `server`. `words` is OpenSSL's reason; known ones are put into plain words.
  static func failure(_ words: String, _ server: String) -> (TransportError.Code, String) {
    let isVersion = ["alert protocol version", "unsupported protocol", "no protocols available"].contains {
      words.contains($0)
    }
    if isVersion {
      return (.tls, "\(server) speaks no version of TLS that is taken here, which are 1.2 and 1.3 (\(words))")
    }
    return (.tls, "\(words) (\(server))")
  }
}
