import BlobHTTP
import Blobs

/// `/healthz` and `/metrics`, for programs that watch the server.
///
/// Both names are usual, so a folder may have files with them. A file that was published is never hidden: these routes
/// answer only while nothing in the folder has their name. Whoever may publish files there can therefore end them, which
/// the access log and the watching program show; reserving the names would take files away from those who have them.
enum MonitoringRoutes {
  static let metricsPath = "/metrics"
  /// The names of the files in the served folder that hide the routes.
  static let names: Set<BytePath> = ["healthz", "metrics"]

  /// Whether the server can do its work: 200, or 503 with the reason. It tells nothing else, so it needs neither a token
  /// nor a certain `Host`, which probes often replace by an address. nil: the request is for something else.
  static func health(_ request: Request, _ target: RequestTarget, _ service: Service) -> Plan? {
    guard request.method == "GET" || request.method == "HEAD", target.path.elementsEqual("/healthz".utf8) else {
      return nil
    }
    return unlessPublished(target, service, otherwise: { Router.regular(request, target, service) }) {
      guard let problem = service.upkeep.health.problem else { return Reply(200, uncached, text: "ok") }
      return Reply(503, uncached, text: problem)
    }
  }

  /// nil: the request is for something else, or the metrics have an address of their own.
  static func metrics(_ call: RoutedRequest) -> Plan? {
    guard call.method == "GET" || call.method == "HEAD", call.target.isMetrics, call.options.metrics == nil else {
      return nil
    }
    return unlessPublished(call.target, call.service, otherwise: { Router.file(call) }) { Metrics.reply(call.service) }
  }

  private static let uncached: HTTPHeaders = ["Cache-Control": "no-store"]

  /// `otherwise`: the plan if something in the folder has the target's name. As long as nothing has, as the check of every
  /// second knows, the answer waits for no disk and no other request.
  private static func unlessPublished(
    _ target: RequestTarget, _ service: Service, otherwise: @escaping @Sendable () -> Plan,
    _ reply: @escaping @Sendable () -> Reply
  ) -> Plan {
    if service.upkeep.health.stall != nil || !service.upkeep.health.mayHave(BytePath(target.path.dropFirst())) {
      return .reply(reply())
    }
    return service.folders.lookUp {
      do throws(ServerError) {
        let item = try service.store.item(at: ServedPath.fromURL(target.path).path)
        return item == nil ? .reply(reply()) : otherwise()
      } catch {
        // A symbolic link is refused with 403, and has the name nevertheless. Without its folder the store fails with 500.
        return error.status < 500 ? otherwise() : .reply(reply())
      }
    }
  }
}

extension UploadStore {
  /// Which of the names of `MonitoringRoutes` something in the folder has. Blocks as long as the file system does.
  var monitoringNames: Set<BytePath> {
    MonitoringRoutes.names.filter { name in
      do throws(ServerError) {
        return try item(at: ServedPath(name.bytes)) != nil
      } catch {
        // A symbolic link is refused with 403, and has the name nevertheless.
        return error.status < 500
      }
    }
  }
}

extension RequestTarget {
  var isMetrics: Bool { path.elementsEqual(MonitoringRoutes.metricsPath.utf8) }
}
