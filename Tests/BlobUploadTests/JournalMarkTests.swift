import BlobUpload
import Platform
import Testing

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
  }
}
