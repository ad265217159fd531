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
      try await journal.jobs.keep(JournalJob(url, source: "photo 1", version: "1", state: .registered, attempts: 1))
      try await journal.jobs.keep(job)
      // The journal is not closed, as after a kill.
      let other = try await folder.open()
      #expect(try await other.jobs.job(at: url) == job)
      #expect(try await other.jobs.open() == [job])
      job.state = .refused
      try await other.jobs.keep(job)
      #expect(try await journal.jobs.open().isEmpty)
      #expect(try await journal.jobs.refused() == [job])
      #expect(try await journal.jobs.job(at: "https://nas.example/b.heic") == nil)
      job.state = .waiting
      try await other.jobs.keep(job)
      #expect(try await journal.jobs.refused().isEmpty)
      #expect(try await journal.jobs.waiting() == [job])
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
      try await journal.jobs.settle("photo 1", "1", at: "https://nas.example/")
      try await journal.jobs.settle("photo 1", "2", at: "https://nas.example/")
      #expect(try await journal.jobs.settledVersion(of: "photo 1", at: "https://nas.example/") == "2")
      #expect(try await journal.jobs.settledVersion(of: "photo 1", at: "https://other.example/") == nil)
    }

    @Test func aJournalOfVersion9GetsTheTables() async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      try Database(folder.path).execute("DROP TABLE job; DROP TABLE settled; PRAGMA user_version=9")
      let journal = try await folder.open()
      try await journal.jobs.keep(JournalJob(url, source: "photo 1"))
      #expect(try await journal.jobs.job(at: url)?.source == "photo 1")
    }
  }
}
