import BlobCrypto
import BlobStreams
import BlobTesting
import Blobs
import Foundation
import FoundationXML
import Testing

/// Consumers of streams in Foundation and in applications.
struct ConsumerTests {
  private let fault = BlobError(.io, "the card was pulled out", errno: 5)

  private var document: [UInt8] {
    Array(("<?xml version=\"1.0\"?><gallery>" + String(repeating: "<photo/>", count: 50_000) + "</gallery>").utf8)
  }

  private final class Counter: NSObject, XMLParserDelegate {
    var photos = 0
    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      if name == "photo" { photos += 1 }
    }
  }

  @Test(arguments: [0, 1]) func xmlParserReadsAllOfIt(preferredRead: Int) {
    let counter = Counter()
    let parser = XMLParser(stream: BlobInputStream(DataSource(document, preferredRead: preferredRead)))
    parser.delegate = counter
    #expect(parser.parse())
    #expect(counter.photos == 50_000)
  }

  @Test func xmlParserReceivesTheErrorOfTheSource() {
    let source = FaultySource(DataSource(document), .fail(at: 200_000, fault))
    let parser = XMLParser(stream: BlobInputStream(source))
    #expect(!parser.parse())
    #expect(BlobError(underlying: parser.parserError)?.errno == 5)
  }

  @Test func jsonSerializationReadsAllOfIt() throws {
    let stream = BlobInputStream(DataSource("[" + (0..<3000).map(String.init).joined(separator: ",") + "]"))
    stream.open()
    let numbers = try #require(try JSONSerialization.jsonObject(with: stream) as? [Int])
    #expect(numbers == Array(0..<3000))
  }

  @Test(arguments: [true, false]) func jsonSerializationReceivesTheErrorOfTheSource(reports: Bool) {
    let text = "[" + (0..<3000).map(String.init).joined(separator: ",") + "]"
    let stream = BlobInputStream(FaultySource(DataSource(text), .fail(at: 4096, fault)))
    stream.reportsErrorsToURLLoading = reports
    stream.open()
    let thrown = #expect(throws: (any Error).self) { _ = try JSONSerialization.jsonObject(with: stream) }
    #expect(BlobError(underlying: thrown)?.errno == 5)
  }

  @Test func checksumFromTheMainRunLoopIsThatOfTheFile() throws {
    let pattern = PatternSource(length: 3_000_000, seed: 9)
    for asynchronous in [false, true] {
      let stream = BlobInputStream(pattern, asynchronous: asynchronous)
      let events = EventLog()
      stream.delegate = events
      let digest = Monitor(Digest(.sha256))
      events.react { stream, event in
        guard event == .hasBytesAvailable, let chunk = (stream as? BlobInputStream)?.readOnce(50_000) else { return }
        digest.update { digest in chunk.withUnsafeBytes { digest.update($0) } }
      }
      stream.open()
      let thread = LoopThread()
      stream.schedule(in: thread.loop, forMode: .default)
      #expect(waitUntil { events.heard(.endEncountered) })
      #expect(digest.update { $0.value() } == Digest.value(of: pattern.bytes(count: 3_000_000), .sha256))
      thread.stop()
    }
  }
}
