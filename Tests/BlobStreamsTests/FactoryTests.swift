import BlobStreams
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Testing

struct FactoryTests {
  @Test func streamForURLLoadingIsSynchronousAndSilent() throws {
    let stream = BlobInputStream.forURLLoading(DataSource("abc"))
    #expect(!stream.isAsynchronous && !stream.reportsErrorsToURLLoading)
    try stream.checkForURLLoading()
    stream.open()
    #expect(stream.readOnce(10) == Array("abc".utf8))
    #expect(stream.reopened().reportsErrorsToURLLoading == false)
  }

  @Test func asynchronousStreamIsRefusedForURLLoading() {
    let stream = BlobInputStream(DataSource("abc"), asynchronous: true)
    #expect(failure { () throws(BlobError) in try stream.checkForURLLoading() }?.code == .unsupported)
  }

  @Test func streamOfAURLIsThatOfItsFile() throws {
    let folder = try ScratchFolder()
    let path = "\(folder.path)/a b%ü.bin"
    try Data([1, 2, 3]).write(to: URL(filePath: path))
    let stream = try BlobInputStream.forURL(URL(filePath: path))
    stream.open()
    #expect(stream.readOnce(10) == [1, 2, 3])
    #expect(
      failure { () throws(BlobError) in try BlobInputStream.forURL(URL(string: "gopher://x/")!) }?.code == .unsupported)
  }

  @Test func manyFormsOpenOnFewThreadsAndOneThatStallsStopsNone() {
    let threads = StreamThreads(4)
    let gate = ThreadGate()
    let stalled = BlobInputStream.forMultipart(
      GatedSource(source: DataSource("never"), gate: gate, at: .opening), openingOn: threads)
    stalled.open()
    #expect(gate.awaitVisitor())
    let streams = (0..<1000).map { number in
      BlobInputStream.forMultipart(DataSource("\(number)"), openingOn: threads)
    }
    for stream in streams { stream.open() }
    var most = 0
    for (number, stream) in streams.enumerated() {
      #expect(stream.readOnce(10) == Array("\(number)".utf8))
      most = max(most, threads.count)
    }
    #expect(most <= 4)
    #expect(stalled.streamStatus == .opening)
  }
}
