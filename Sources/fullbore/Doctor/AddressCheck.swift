import BlobClient
import BlobHTTP
import Platform

/// Whether the name of the server has addresses, and which of them answer.
struct AddressCheck: Sendable {
  let host: String
  let port: Int
  let report: DoctorReport

  private static let lookupLimit = Duration.seconds(15)
  private static let connectLimit = Duration.seconds(5)

  /// Returns whether any address answers.
  func run() async -> Bool {
    let (host, port) = (host, port)
    let looked = await result(within: Self.lookupLimit) { HostAddress.all(of: host, port: port) }
    guard let looked else {
      report.note("name", "no answer about \(host) within \(Self.lookupLimit): is this machine online?")
      return false
    }
    let addresses: [HostAddress]
    switch looked {
    case .success(let found): addresses = found
    case .failure(let error):
      report.note("name", "no address is known for \(host): \(error.message)")
      return false
    }
    var errors: [(address: HostAddress, error: Int32)] = []
    await withTaskGroup(of: (Int, Int32).self) { group in
      for (number, address) in addresses.enumerated() {
        group.addTask {
          let error = await result(within: Self.connectLimit + .seconds(1)) {
            address.connect(within: Self.connectLimit)
          }
          return (number, error ?? ETIMEDOUT)
        }
      }
      for await (number, error) in group { errors.append((addresses[number], error)) }
    }
    if Task.isCancelled { return false }
    return tell(errors.sorted { a, b in a.address.text < b.address.text })
  }

  private func tell(_ tried: [(address: HostAddress, error: Int32)]) -> Bool {
    let good = tried.filter { $0.error == 0 }.map(\.address.text)
    if good.isEmpty {
      let list = tried.map { "\($0.address.text): \(Self.words($0.error))" }.joined(separator: "; ")
      report.note("address", "no address of \(host) answers at port \(port): \(list)")
      return false
    }
    report.fine("address", "\(host) answers at \(good.joined(separator: " and ")), port \(port)")
    for (address, error) in tried where error != 0 {
      if [ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT].contains(error) {
        report.note(
          "address", "\(address.text) is announced too, and this machine has no way there (\(Self.words(error)))")
        continue
      }
      report.found(finding(address, error))
    }
    return true
  }

  private func finding(_ address: HostAddress, _ error: Int32) -> Finding {
    let family = address.isIPv6 ? "IPv6" : "IPv4"
    let any = address.isIPv6 ? "[::]" : "0.0.0.0"
    return Finding(
      kind: .address,
      what: "\(host) is announced at the \(family) address \(address.text), which does not answer at port \(port): "
        + Self.words(error),
      consequence: error == ETIMEDOUT
        ? "Clients that try this address first wait for it with each new connection, and some never try another one."
        : "Clients that try this address first lose time with each new connection, and some never try another one.",
      mends: [
        Mend(.nginx, in: "in the server block, beside its other listen lines", "listen \(any):\(port);"),
        Mend(.apache, in: "in the server's configuration", "Listen \(any):\(port)"),
        Mend(.haproxy, in: "in the frontend", "bind \(any):\(port)\(address.isIPv6 ? " v6only" : "")"),
        .advice(
          nil,
          "let the server listen at \(address.text) and the firewall let port \(port) through, or remove the name's "
            + "\(address.isIPv6 ? "AAAA" : "A") record for this address."),
      ])
  }

  private static func words(_ error: Int32) -> String {
    error == ETIMEDOUT ? "no answer within \(connectLimit)" : String(cString: strerror(error)).lowercased()
  }
}
