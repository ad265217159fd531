import BlobHTTP
import Foundation
import Testing

@testable import BlobUpload

struct JSONColumnTests {
  static let sessions = [
    UploadSession(state: [:]), session,
    UploadSession(
      state: ["url": "http://a/.up/1?x=\"\\", "names": "Zm9v\n\u{1}", "größe": "\u{1F4F7}"],
      limits: PartLimits(
        smallest: 2, largest: 3, usual: 4, count: 5, isParallel: true, needsLength: true, firstPart: 6, total: 7),
      expires: -8),
    UploadSession(state: ["a": ""], limits: PartLimits(largest: .max, total: 0), expires: .max),
  ]

  /// A member that the session gets one day must be written, too.
  @Test(arguments: sessions)
  func aSessionIsWrittenAsByFoundation(_ session: UploadSession) throws {
    let text = JSONColumn.encode(session)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    #expect(text == String(decoding: try encoder.encode(session), as: UTF8.self))
    #expect(JSONColumn.decode(text) == session)
  }
}
