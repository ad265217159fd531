import BlobHTTP
import BlobUpload
import Blobs
import Foundation
import Platform
import TestSupport
import Testing

@testable import fullbore

/// Programs rely on `docs/push-events.schema.json`.
@Suite struct EventSchemaTests {
  private let scratch = Scratch()

  /// Also with the events of one of several destinations, which say which one it is.
  @Test(arguments: [false, true]) func everyEventFollowsThePublishedSchema(_ areSeveral: Bool) throws {
    let name: BytePath = "events"
    let descriptor = scratch.path.appending(name).withCString { creat($0, 0o644) }
    let destinations =
      areSeveral
      ? ["http://nas/in/", "http://cloud/"].map { ReportedDestination(title: $0, url: $0, counters: PushCounters()) }
      : []
    let whole = JSONReport(
      Console(descriptor: descriptor, limit: 1 << 16), PushCounters(), OutputOptions(isJSON: true), of: destinations)
    let report = destinations.first.map { JSONReport(of: $0, in: whole) } ?? whole
    let file = PushedFile(path: "/src/a\u{FF}.jpg", relative: BytePath([0x61, 0xFF]), length: 1024, id: 7)
    let pipe = PushedFile(path: "/src/b", relative: "b", length: nil)
    report.began(at: "http://nas/in/", speaking: "tus")
    report.started(file)
    report.started(pipe)
    for how in [Finish.sent(bytes: 24, resumedFrom: 1000), .doneBefore(.journal), .doneBefore(.bytes), .alreadyThere] {
      report.finished(file, how: how)
    }
    report.failed(file, "409", UploadError(.giveUp, .file, "PUT: 409", status: 409), advice: "rename it")
    report.failed(pipe, "process 7 is sending it", nil, advice: nil)
    report.failed(file, "refused", UploadError(TransportError(.connect, "PUT: refused")), advice: nil)
    report.failed("/src/gone", "No such file or directory")
    report.leftOut("/src/pipe", reason: "a pipe")
    report.removed("/src/a.jpg")
    report.chosen("b", "a pipe", length: nil)
    report.chosen("a", "1 KiB", length: 1024)
    report.notice("the link is slow")
    var outage = Outage(
      host: "nas:80", since: 1_800_000_000, what: "does not answer", isTriedAgain: true, retry: .seconds(8))
    report.outage(outage)
    outage.status = 503
    report.outage(outage)
    (outage.retry, outage.isOver, outage.status) = (nil, true, nil)
    report.outage(outage)
    report.ended("401", UploadError(.giveUp, .destination, "PUT: 401", status: 401))
    report.ended("nothing was found")
    // The progress is written ten times a second.
    usleep(300_000)
    let summary = PushSummary(elapsed: .seconds(2), error: "401")
    whole.summary(
      summary.adding(destinations.map { PushSummary.Part(title: $0.title, url: $0.url, summary: summary) }))
    close(descriptor)

    let schema = try EventSchema()
    var seen: Set<String> = []
    for line in scratch.content(of: name).split(separator: UInt8(ascii: "\n")) {
      let event = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      #expect(schema.fault(in: event) == nil, "\(event)")
      let kind = event["event"] as? String ?? ""
      seen.insert(kind)
      if kind == "summary" {
        #expect((event["destinations"] as? [Any])?.count == (areSeveral ? 2 : nil))
      } else if areSeveral {
        #expect(event["destination"] is String, "\(event)")
      } else {
        #expect(event["destination"] == nil, "\(event)")
      }
    }
    #expect(seen == schema.names)
    #expect(schema.fault(in: ["event": "notice", "message": 7, "time": 1]) != nil)
    #expect(schema.fault(in: ["event": "notice", "message": "a"]) != nil)
    #expect(schema.fault(in: ["event": "notice", "message": "a", "time": 1, "other": 1]) != nil)
  }
}
