import BlobHTTP

/// An address at which the metrics are read, and nothing else, without a token. It must belong to this machine alone.
struct MetricsAddress: Sendable {
  let listener: Listener
  private let hosts: HostRule
  var url: String { "http://\(listener.host):\(listener.port)\(MonitoringRoutes.metricsPath)" }

  /// Most connections; what reads metrics needs one.
  private static let connections = 8
  /// The number of files that this address needs besides its listener: connections, poller and pipe.
  static let files = connections + 4

  /// nil: the options have no such address.
  init?(_ options: ServerOptions) throws(ServerError) {
    guard let place = options.metrics else { return nil }
    do throws(ServerError) { listener = try Listener(place.address, place.port) } catch {
      var error = error
      error.isOfMetrics = true
      throw error
    }
    guard listener.isLoopback else {
      throw ServerError("metrics need no token, so they can only have an address of this machine, like 127.0.0.1:9100")
    }
    // A page of another site must not read them by a name that leads here, so only names of this machine are accepted.
    var own = options
    (own.token, own.hosts, own.allowedOrigins) = (nil, [], [])
    hosts = HostRule(listener, own)
  }

  /// The loop counts apart, so that reading the metrics does not change them.
  func loop(_ service: Service) throws(ServerError) -> EventLoop {
    try EventLoop(
      service, listener.socket, nil, most: Self.connections, mostLingering: Self.connections / 2, counters: Counters()
    ) { [hosts] request, service in
      do throws(ServerError) {
        let target = try RequestTarget(request.target)
        try hosts.check(request.headers, authority: target.authority, isHTTP11: request.isHTTP11)
        guard ["GET", "HEAD"].contains(request.method), target.isMetrics else {
          throw ServerError(404, "the metrics are at \(MonitoringRoutes.metricsPath)")
        }
        return .reply(Metrics.reply(service))
      } catch {
        return .refuse(error)
      }
    }
  }
}
