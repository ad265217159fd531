import BlobHTTP
import Blobs

/// The numbers of the server in the text format of Prometheus, version 0.0.4.
enum Metrics {
  static func reply(_ service: Service) -> Reply {
    Reply(
      200, ["Content-Type": "text/plain; version=0.0.4; charset=utf-8", "X-Content-Type-Options": "nosniff"],
      body: .bytes(Array(text(service).utf8)))
  }

  private static func text(_ service: Service) -> String {
    let counters = service.counters
    let uploads = counters.uploads
    let requests = [("", Int64(counters.requests.load(ordering: .relaxed)))]
    var text = MetricsText()
    text.add("build_info", .gauge, "The version that runs.", [("{version=\"\(Release.version)\"}", 1)])
    text.add("uploads_begun_total", .counter, "Uploads that were begun.", uploads.begun)
    text.add("uploads_finished_total", .counter, "Uploads whose file has its name.", uploads.finished)
    text.add("uploads_failed_total", .counter, "Uploads that ended without a file.", uploads.failed)
    text.add("uploads_expired_total", .counter, "Unfinished uploads that expired, with their parts.", uploads.expired)
    text.add("uploads_unfinished", .gauge, "Uploads that can be resumed.", [("", Int64(service.store.unfinished))])
    text.add("received_file_bytes_total", .counter, "Bytes of the files of finished uploads.", uploads.bytes)
    text.add("sent_files_total", .counter, "Files and ranges of files that were sent.", counters.filesSent)
    text.add("received_bytes_total", .counter, "Bytes that clients have sent.", counters.bytesReceived)
    text.add("sent_bytes_total", .counter, "Bytes of responses.", counters.bytesSent)
    let answers = counters.answers.enumerated().map { ("{class=\"\($0.offset + 1)xx\"}", $0.element.load()) }
    text.add("responses_total", .counter, "Responses by the class of their status.", answers)
    text.add("connections", .gauge, "Open connections.", counters.connections)
    text.add("requests_in_progress", .gauge, "Requests that were not answered yet.", requests)
    if let free = service.upkeep.health.free {
      text.add("free_bytes", .gauge, "Bytes that can still be stored, by disk and quota.", [("", free)])
    }
    let usable: Int64 = service.upkeep.health.problem == nil ? 1 : 0
    text.add("folder_usable", .gauge, "Whether files can be received (1), as /healthz says.", [("", usable)])
    text.add("request_duration_seconds", "Time from a request's head to the end of its response.", counters.durations)
    return text.text
  }
}

/// Text in the format of Prometheus. All names begin with `fullbore_`.
private struct MetricsText {
  enum Kind: String { case counter, gauge, histogram }
  private(set) var text = ""

  mutating func add(_ name: String, _ kind: Kind, _ help: String, _ counter: Counter) {
    add(name, kind, help, [("", counter.load())])
  }

  /// `values`: each with its labels.
  mutating func add(_ name: String, _ kind: Kind, _ help: String, _ values: [(labels: String, value: Int64)]) {
    head(name, kind, help)
    for (labels, value) in values { text += "fullbore_\(name)\(labels) \(value)\n" }
  }

  mutating func add(_ name: String, _ help: String, _ histogram: DurationHistogram) {
    head(name, .histogram, help)
    // Requests end meanwhile, so the count is computed from the same numbers as the buckets.
    var count: Int64 = 0
    for (bound, bucket) in zip(DurationHistogram.bounds + ["+Inf"], histogram.buckets) {
      count += bucket.load()
      text += "fullbore_\(name)_bucket{le=\"\(bound)\"} \(count)\n"
    }
    let sum = histogram.nanoseconds.load()
    let fraction = String(sum % 1_000_000_000)
    let digits = String(repeating: "0", count: 9 - fraction.utf8.count) + fraction
    text += "fullbore_\(name)_sum \(sum / 1_000_000_000).\(digits)\n"
    text += "fullbore_\(name)_count \(count)\n"
  }

  private mutating func head(_ name: String, _ kind: Kind, _ help: String) {
    text += "# HELP fullbore_\(name) \(help)\n# TYPE fullbore_\(name) \(kind.rawValue)\n"
  }
}
