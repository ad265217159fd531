import BlobSQLite
import BlobUpload
import Blobs
import Testing

extension JournalTests {
  /// Uploads that the system makes on behalf of an app.
  struct Jobs {
    private let url = "https://nas.example/a.heic"

    @Test func aJobSurvivesTheProcessAndReplacesTheOneBefore() async throws {
      let folder = JournalFolder()
      var job = JournalJob(
        url, source: "photo 1", done: "1", version: "2", state: .retrying, attempts: 2, error: "no network", updated: 7)
      let journal = try await folder.open()
      try await journal.keep(JournalJob(url, source: "photo 1", version: "1", state: .registered, attempts: 1))
      try await journal.keep(job)
      // The journal is not closed, as after a kill.
      let other = try await folder.open()
      #expect(try await other.job(at: url) == job)
      #expect(try await other.openJobs() == [job])
      job.state = .refused
      try await other.keep(job)
      #expect(try await journal.openJobs().isEmpty)
      #expect(try await journal.refusedJobs() == [job])
      #expect(try await journal.job(at: "https://nas.example/b.heic") == nil)
      job.state = .waiting
      try await other.keep(job)
      #expect(try await journal.refusedJobs().isEmpty)
      #expect(try await journal.waitingJobs() == [job])
      #expect(!job.isOpen && !job.isSettled("1") && !job.isSettled("2"))
    }

    @Test func onlyWhatWasSentOrGivenUpIsSettled() {
      let sent = JournalJob(url, source: "", done: "1")
      #expect(sent.isSettled("1") && !sent.isSettled("2"))
      let refused = JournalJob(url, source: "", done: "1", version: "2", state: .refused)
      #expect(refused.isSettled("2") && !refused.isSettled("1") && !refused.isOpen)
      for state in [JournalJob.State.registering, .registered, .retrying] {
        let job = JournalJob(url, source: "", done: "1", version: "2", state: state)
        #expect(job.isOpen && !job.isSettled("1") && !job.isSettled("2"))
      }
    }

    @Test func aSettledVersionBelongsToItsFolder() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      try await journal.settle("photo 1", "1", at: "https://nas.example/")
      try await journal.settle("photo 1", "2", at: "https://nas.example/")
      #expect(try await journal.settledVersion(of: "photo 1", at: "https://nas.example/") == "2")
      #expect(try await journal.settledVersion(of: "photo 1", at: "https://other.example/") == nil)
    }

    @Test func aJournalOfVersion9GetsTheTables() async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      try Database(folder.path).execute("DROP TABLE job; DROP TABLE settled; PRAGMA user_version=9")
      let journal = try await folder.open()
      try await journal.keep(JournalJob(url, source: "photo 1"))
      #expect(try await journal.job(at: url)?.source == "photo 1")
    }
  }
}
