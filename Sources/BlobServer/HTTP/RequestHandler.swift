import BlobHTTP

/// Decides about the requests of an event loop, counts them, and reports them to the log.
struct RequestHandler {
  typealias Route = @Sendable (Request, Service) -> Plan

  let service: Service
  let counters: Counters
  private let route: Route

  init(_ service: Service, _ counters: Counters, route: @escaping Route) {
    (self.service, self.counters, self.route) = (service, counters, route)
  }

  /// The routes of a store in the network wait for it, so they run on a worker.
  func plan(_ request: Request) -> Plan {
    guard let relays = service.relays else { return route(request, service) }
    return .later { [route, service] decided in
      relays.submit { service.follow(route(request, service), decided) }
    }
  }

  func received(_ count: Int) { counters.bytesReceived.add(Int64(count)) }
  func requestBegan() { counters.requests.add(1, ordering: .sequentiallyConsistent) }
  func requestEnded() { counters.requests.subtract(1, ordering: .sequentiallyConsistent) }

  /// Whether somebody wants to know from where requests come.
  var wantsAddresses: Bool { service.options.answered != nil && counters === service.counters }

  func ended(_ notes: RequestNotes, _ request: Request?, sent: Int64) {
    guard let answered = notes.end(request, sent: sent) else { return }
    counters.answered(answered.status, in: answered.duration)
    if wantsAddresses { service.options.answered?(answered) }
  }
}
