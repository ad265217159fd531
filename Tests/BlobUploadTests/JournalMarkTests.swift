import Blobs
import Platform
import Testing

@testable import BlobUpload

extension JournalTests {
  @Suite struct Marks {
    @Test func thisProcessIsAlive() {
      #expect(ProcessIdentity.current.pid == getpid())
      #expect(ProcessIdentity.current.isAlive)
      #expect(ProcessIdentity.current.start > 0)
      #expect(ProcessIdentity.current.boot.count == 36)
      #expect(ProcessIdentity(of: getpid()) == .current)
    }

    @Test func aProcessIsDeadOnceItIsKilledAlsoBeforeItIsCollected() {
      let process = IdleProcess()
      #expect(process.mark.isAlive)
      process.kill()
      #expect(!process.mark.isAlive)
      #expect(ProcessIdentity(of: process.pid) == nil)
      process.end()
      #expect(!process.mark.isAlive)
    }

    @Test func anotherProcessOfTheSameNumberIsNotIt() {
      var mark = ProcessIdentity.current
      mark.start += 1
      #expect(!mark.isAlive)
      mark = .current
      mark.boot = "00000000-0000-0000-0000-000000000000"
      #expect(!mark.isAlive)
    }

    /// iOS shows no other process. In a container of its own, an app's earlier process has ended if another one has its pid.
    @Test func aHiddenProcessIsAliveOnlyWhereOthersHaveTheJournal() {
      let mark = ProcessIdentity(pid: getpid() + 1, boot: ProcessIdentity.current.boot, start: 5)
      #expect(mark.isAlive(.hidden, withOthers: true))
      #expect(!mark.isAlive(.hidden, withOthers: false))
      #expect(mark.isAlive(.running(start: 5), withOthers: false))
      #expect(!mark.isAlive(.ended, withOthers: true))
      // An earlier process with the pid of this one, where the system does not show this one either.
      var mine = ProcessIdentity.current
      #expect(mine.isAlive(.hidden, withOthers: false))
      mine.start += 1
      #expect(!mine.isAlive(.hidden, withOthers: true))
    }

    /// As after a container was moved to another machine while it ran.
    @Test func aJournalKeepsItsClaimsThoughTheSystemDoesNotKnowItsProcess() async throws {
      let folder = JournalFolder()
      var mark = ProcessIdentity.current
      mark.start += 1
      let journal = try await folder.open(as: mark)
      let destination = try await journal.destinationID(.tus)
      let id = try #require(try await journal.claim([intent()], destination: destination).first?.id)
      #expect(try await journal.unfinished().map(\.owner) == [mark])
      #expect(try await journal.claim([intent()], destination: destination).map(\.name) == ["busy"])
      journal.done(id, UploadResult())
      #expect(try await journal.unfinished().isEmpty)
      await journal.close()
    }

    @Test func aContainerOfAnAppGroupIsRecognised() {
      let group: BytePath = "/private/var/mobile/Containers/Shared/AppGroup/1234/journal.sqlite"
      let own: BytePath = "/var/mobile/Containers/Data/Application/1234/Library/Shared/journal.sqlite"
      #expect(group.isInGroupContainer && !own.isInGroupContainer)
    }
  }
}
