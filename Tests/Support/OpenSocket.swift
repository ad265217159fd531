#if os(Linux)
  import BlobTesting
  import Platform

  /// A connected IPv4 socket of this process, found by asking the system.
  public struct OpenSocket: Sendable {
    public let descriptor: Int32
    public let port: Int
    public let peerPort: Int

    public static var all: [OpenSocket] {
      (Int32(3)..<4096).compactMap { descriptor in
        guard let port = port(of: descriptor, getsockname), let peer = self.port(of: descriptor, getpeername) else {
          return nil
        }
        return OpenSocket(descriptor: descriptor, port: port, peerPort: peer)
      }
    }

    /// Whether the socket is close-on-exec, so that child processes do not inherit it.
    public var isOurs: Bool { fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0 }

    public var congestionControl: String { Self.congestionControl(of: descriptor) }

    /// The congestion control of a new, unconfigured socket.
    public static var usualCongestionControl: String {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      return congestionControl(of: descriptor)
    }

    private static func congestionControl(of descriptor: Int32) -> String {
      var name = [UInt8](repeating: 0, count: 16)
      var size = socklen_t(name.count)
      getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CONGESTION, &name, &size)
      return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
    }

    private typealias NameOf = (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32

    private static func port(of descriptor: Int32, _ name: NameOf) -> Int? {
      var address = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let status = withUnsafeMutableBytes(of: &address) {
        name(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
      }
      return status == 0 && address.sin_family == AF_INET ? Int(UInt16(bigEndian: address.sin_port)) : nil
    }
  }
#endif
