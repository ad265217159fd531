import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// A server reports an impossible state of an upload that earlier runs started. The journal records how far bytes were
/// sent.
@Suite(.serialized) struct EarlierRunTests {
  private static let names = ["tus", "resumable"]
  private static let length: Int64 = 100 << 20

  private func uploadProtocol(_ name: String) -> any UploadProtocol {
    name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable(wholeUpTo: 0)
  }

  /// The first run sends 40 of 100 MiB, and gets no response. Then the server reports that it has `held` bytes.
  /// Returns the methods of the second run.
  private func methods(_ name: String, heldThen held: Int64) async throws -> [String] {
    let (outcome, methods) = try await Desk().runAfterCut(name, length: Self.length, partSize: 40 << 20) { request in
      if request.method == "HEAD" { return .holding(held, of: Self.length, name) }
      let offset = request.headers.bytes("Upload-Offset") ?? 0
      return .holding(min(Self.length, offset + 40 << 20), of: Self.length, name)
    }
    #expect(outcome.sent == 1)
    return methods
  }

  @Test(arguments: names, [57 << 20, length]) func anOffsetBeyondTheSentLimitIsNotBelieved(
    _ name: String, _ held: Int64
  )
    async throws
  {
    let methods = try await methods(name, heldThen: held)
    // The old upload at the server is deleted once the file is sent, unless the server reports that it is complete.
    let deleting = held == Self.length ? ["HEAD"] : ["HEAD", "DELETE"]
    #expect(methods == ["HEAD", "POST", "PATCH", "PATCH", "PATCH"] + deleting)
  }

  @Test(arguments: names) func anUploadContinuesAtTheOffsetThatTheServerReports(_ name: String) async throws {
    #expect(try await methods(name, heldThen: 40 << 20) == ["HEAD", "PATCH", "PATCH"])
    #expect(try await methods(name, heldThen: 20 << 20) == ["HEAD", "PATCH", "PATCH"])
  }

  /// All bytes were sent, and the response was lost.
  @Test(arguments: names) func aCompleteUploadIsFoundComplete(_ name: String) async throws {
    let (outcome, methods) = try await Desk().runAfterCut(name, length: Self.length) { _ in
      .holding(Self.length, of: Self.length, name)
    }
    #expect(outcome.sent == 1)
    #expect(methods == ["HEAD"])
  }

  /// The first run is cut in the middle. Then the server answers every question about that upload with `status`.
  private func runs(_ name: String, thenAnswering status: Int) async throws -> (Outcomes, [String]) {
    try await Desk().runAfterCut(name, length: Self.length) { request in
      ["HEAD", "DELETE"].contains(request.method)
        ? .status(status) : .holding(Self.length, of: Self.length, name)
    }
  }

  /// The server's record of the upload is damaged.
  @Test(arguments: names, [400, 422, 451]) func oneThatTheServerRefusesIsBegunAnew(_ name: String, _ status: Int)
    async throws
  {
    let (outcome, methods) = try await runs(name, thenAnswering: status)
    #expect(outcome.sent == 1)
    #expect(methods == ["HEAD", "POST", "PATCH", "HEAD", "DELETE"], "\(methods)")
  }

  /// A firewall refuses everything for a while. What the server has of the file is kept.
  @Test(arguments: names) func anOldUploadIsKeptWhileTheServerRefusesANewOne(_ name: String) async throws {
    let desk = try await Desk()
    let run = Mutex(1)
    let script = Script { _, request throws(TransportError) in
      let run = run.withLock { $0 }
      switch request.method {
      case _ where run == 2: return .status(418)
      case "POST": return .emptyCreation(name)
      case "PATCH" where run == 1: throw TransportError(.broken, "the connection broke")
      case "HEAD" where run == 1: return .status(503)
      case "HEAD": return .holding(40 << 20, of: Self.length, name)
      default: return .holding(Self.length, of: Self.length, name)
      }
    }
    for number in 1...2 {
      run.withLock { $0 = number }
      let queue = desk.queue(script, uploadProtocol(name), partSize: 40 << 20)
      #expect(try await desk.run(queue, ["a"], length: Self.length).error("a")?.status == (number == 1 ? 503 : 418))
    }
    run.withLock { $0 = 3 }
    let count = script.methods.count
    let queue = desk.queue(script, uploadProtocol(name), partSize: 60 << 20)
    #expect(try await desk.run(queue, ["a"], length: Self.length).sent == 1)
    #expect(Array(script.methods.dropFirst(count)) == ["HEAD", "PATCH"])
  }

  @Test(arguments: names) func oneWithWhichTheServerFailsIsNamed(_ name: String) async throws {
    let (outcome, methods) = try await runs(name, thenAnswering: 500)
    #expect(outcome.error("a")?.message.hasSuffix("(asked about the upload that an earlier run began)") == true)
    #expect(!methods.contains("POST"), "a server that fails for a while keeps what it has")
  }

  /// A request that starts at an earlier byte does not reduce the recorded end of an earlier request.
  @Test func theFurthestByteCounts() {
    let noted = Mutex<[Int64]>([])
    let tracker = SendingLedger { end in noted.withLock { $0.append(end) } }.tracker(notesCreation: true)
    tracker.noteSending(from: 0)
    tracker.sent(500)
    tracker.noteSending(from: 100)
    tracker.sent(10)
    tracker.sent(600)
    #expect(noted.withLock { $0 } == [500, 500, 710])
    tracker.restart()
    tracker.begin(at: 0)
    tracker.sent(7)
    tracker.opened(UploadSession(state: [:]))
    #expect(noted.withLock { $0.last } == 7)
  }
}

extension JournalTests {
  @Suite struct SentLimit {
    let folder = JournalFolder()

    @Test func theSentLimitIsSomewhatAboveTheRecordedOffset() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      // No end is recorded, as by an earlier version of the program.
      #expect(try await journal.only().sentLimit == nil)
      journal.sending(id, from: 0, key: SentRange.noKey)(40, SentRange.noValue)
      journal.failed(id, "no")
      #expect(try await journal.claim().entry?.sentLimit == 40 + 16 << 20)
      // A later request from the same byte sent fewer bytes.
      journal.sending(id, from: 0, key: SentRange.noKey)(30, SentRange.noValue)
      journal.failed(id, "no")
      #expect(try await journal.only().sentLimit == 40 + 16 << 20)
      _ = try await journal.claim()
      journal.restarted(id)
      journal.opened(id, session)
      // No end is recorded, as by an earlier version of the program.
      #expect(try await journal.only().sentLimit == nil)
      await journal.close()
    }

    /// Some bytes may have been sent that were not recorded yet.
    @Test func afterAKillTheSentLimitIsSomewhatMore() async throws {
      let folder = JournalFolder(for: "limit")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        let journal = try await Journal(at: JournalFolder.pathInParent("limit"))
        let id = try await journal.claim().id!
        journal.opened(id, session)
        try await journal.flush()
        journal.sending(id, from: 0, key: SentRange.noKey)(40, SentRange.noValue)
        kill(getpid(), SIGKILL)
      }
      for _ in 1...2 {
        let journal = try await folder.open()
        let entry = try await journal.only()
        #expect(entry.sentLimit == 40 + 16 << 20 && entry.sent.map(\.end) == [40])
        await journal.close()
      }
    }

    /// The last record may not have reached the disk.
    @Test func afterAPowerFailureTheSentLimitIsUnknown() async throws {
      let before = try await folder.open(as: ProcessIdentity(pid: 1, boot: "an earlier one", start: 1))
      let id = try #require(try await before.claim().id)
      before.opened(id, session)
      try await before.flush()
      let journal = try await folder.open()
      #expect(try await journal.claim().entry?.sentLimit == .some(nil))
      await journal.close()
      await before.close()
    }
  }
}
