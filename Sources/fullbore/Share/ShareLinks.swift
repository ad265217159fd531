import BlobHTTP
import BlobServer
import Platform

/// The links with which others reach a server.
struct ShareLinks {
  /// The best one first.
  let all: [String]

  /// `token`: each link has it in its fragment, which browsers send to no server; nil: the links have none.
  init(_ server: Server, _ listen: ListenAddress, token: String?) {
    let scheme = server.url.prefix { $0 != ":" }
    let fragment = token.map { "#" + HTTPURL.encode(Array($0.utf8)) } ?? ""
    let hosts = Self.hosts(listen, LocalAddress.all(), announced: MulticastName.announced())
    all = hosts.map { "\(scheme)://\($0):\(server.port)/\(fragment)" }
  }

  /// The names or addresses of the server in URLs.
  /// `announced`: the name by which devices nearby find this machine, if it is announced. It comes last, since not every
  /// phone looks for such names.
  static func hosts(
    _ listen: ListenAddress, _ local: @autoclosure () -> [LocalAddress], announced: @autoclosure () -> String? = nil
  ) -> [String] {
    switch listen.address {
    // Nobody can open a link with the address that stands for all of them.
    case "0.0.0.0", "::":
      let found = local().filter { listen.address == "::" || !$0.isIPv6 }.sorted { rank($0) < rank($1) }
      if found.isEmpty { return ["127.0.0.1"] }
      return found.map { $0.isIPv6 ? "[\($0.text)]" : $0.text } + [announced()].compactMap { $0 }
    default: return [listen.address.contains(":") ? "[\(listen.address)]" : listen.address]
    }
  }

  /// The addresses of a home or office network come first; those of containers and virtual machines, which no phone
  /// reaches, come last.
  private static func rank(_ address: LocalAddress) -> Int {
    let inside = ["docker", "br-", "veth", "virbr", "vmnet", "tun", "utun", "bridge"]
    if inside.contains(where: address.interface.hasPrefix) { return 3 }
    if address.isIPv6 { return 2 }
    return ["192.168.", "10.", "172."].contains(where: address.text.hasPrefix) ? 0 : 1
  }
}
