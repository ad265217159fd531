import Platform
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient
@testable import BlobHTTP

// Forms that are prepared as files.
extension FormTests {
  @Test func preparingReturnsAtOnceAndCallsOneOfTheTwoOnce() async throws {
    let folder = try ScratchFolder()
    let (done, failed) = (Tally(), Tally())
    let stalled = film(FaultySource(PatternSource(length: 5000), .stall(at: 1000)))
    let (ended, end) = AsyncStream<FormPreparationError?>.makeStream()
    let start = ContinuousClock.now
    let cancel = stalled.prepare(to: folder.path.appending("stalled")) { _ in
      done.add(1)
      end.yield(nil)
    } failure: { error in
      failed.add(1)
      end.yield(error)
    }
    #expect(ContinuousClock.now - start < .seconds(1))
    cancel.cancel()
    var endings = ended.makeAsyncIterator()
    #expect(await endings.next()??.side == .cancelled)

    film(PatternSource(length: 5000)).prepare(to: folder.path.appending("whole")) { prepared in
      done.add(1)
      end.yield(nil)
    } failure: { error in
      failed.add(1)
      end.yield(error)
    }
    _ = await endings.next()
    #expect(done.value == 1 && failed.value == 1)
    #expect(folder.names(in: "") == ["whole"])
  }

  @Test func mediaThatFailsLeavesNoFile() async throws {
    let folder = try ScratchFolder()
    let form = film(FaultySource(PatternSource(length: 1 << 20), .fail(at: 1 << 19, BlobError(.io, "pulled out"))))
    let error = await #expect(throws: FormPreparationError.self) { () async throws in
      _ = try await form.prepare(to: folder.path.appending("body"))
    }
    #expect(error?.side == .media && error?.message.contains("pulled out") == true)
    #expect(folder.names(in: "") == [])
  }

  @Test func fileThatIsThereIsLeftAlone() async throws {
    let folder = try ScratchFolder()
    _ = try await film(PatternSource(length: 10)).prepare(to: folder.path.appending("body"))
    let before = folder.read("body")
    for name in ["body", "no/such/folder"] as [BytePath] {
      let error = await #expect(throws: FormPreparationError.self) { () async throws in
        _ = try await film(PatternSource(length: 20)).prepare(to: folder.path.appending(name))
      }
      #expect(error?.side == .body)
    }
    #expect(folder.read("body") == before)
  }

  /// `/dev/full` refuses every byte, like a full disk.
  @Test func aFullDiskIsReportedWhileAFormIsWritten() throws {
    let full = "/dev/full".withCString { openForWriting($0) }
    try #require(full >= 0)
    defer { close(full) }
    do throws(FormPreparationError) {
      _ = try film(PatternSource(length: 10)).write(into: full, named: "/dev/full", { _, _ in }, Cancellation())
      Issue.record("/dev/full took it")
    } catch {
      #expect(error.side == .diskFull && error.cause.errno == ENOSPC)
    }
  }
}
