import Blobs
import Testing

@testable import fullbore

@Suite struct WatchOptionsTests {
  private let scratch = Scratch()

  private func options(_ arguments: BytePath...) throws(UsageError) -> WatchOptions {
    try WatchOptions(Arguments(arguments, WatchCommand.declaration))
  }

  @Test func foldersAndTimesAreTaken() throws {
    scratch.folder("a")
    scratch.folder("ab")
    let (a, ab) = (scratch.path.appending("a"), scratch.path.appending("ab"))
    let plain = try options(a, ab, "http://h/")
    #expect(plain.push.sources == [a, ab] && plain.settle == .seconds(2) && plain.rescan == nil)
    let timed = try options("--settle", "500ms", "--rescan", "5m", a, "http://h/")
    #expect(timed.settle == .milliseconds(500) && timed.rescan == .seconds(300))
  }

  @Test func aPathThatCannotBeWatchedIsRefused() {
    let file = scratch.file("a/IMG.jpg")
    let folder = scratch.path.appending("a")
    #expect(
      usageError { () throws(UsageError) in _ = try options(file, "http://h/") }?.contains("only folders") == true)
    let gone = folder.appending("gone")
    #expect(
      usageError { () throws(UsageError) in _ = try options(gone, "http://h/") }?.contains("No such file") == true)
    for other in [folder, scratch.path, scratch.path.appending("")] {
      let message = usageError { () throws(UsageError) in _ = try options(folder, other, "http://h/") }
      #expect(message?.contains("lies in") == true, "\(message ?? "")")
    }
    #expect(
      usageError { () throws(UsageError) in _ = try options("--rescan", "10ms", folder, "http://h/") }?
        .contains("--rescan") == true)
  }
}
