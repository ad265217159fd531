import Blobs
import Foundation
import TestSupport
import Testing

@testable import fullbore

/// Two files of one push that would get one name.
struct NameClashTests {
  private let scratch = Scratch()

  /// A card is emptied file by file, or a folder is watched from which files are deleted once they are sent.
  @Test func aFileWhoseSourceIsGoneIsNotReplaced() async throws {
    let (first, second) = (scratch.path.appending("first.jpg"), scratch.path.appending("second.jpg"))
    try Data("second".utf8).write(to: URL(fileURLWithPath: second.description))
    func clash(replaces: Bool) async -> NameClash? {
      await NameClash(of: second, with: first, dropsFolders: false, replaces: replaces)
    }
    #expect(await clash(replaces: true)?.other == first)
    // The server refuses other bytes by itself.
    #expect(await clash(replaces: false) == nil)
    try Data("second".utf8).write(to: URL(fileURLWithPath: first.description))
    #expect(await clash(replaces: true) == nil)
  }
}
