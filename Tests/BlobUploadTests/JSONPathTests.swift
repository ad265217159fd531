import Blobs
import Synchronization
import Testing

@testable import BlobUpload

@Suite struct JSONPathTests {
  /// Runs on a thread with as much stack as a connection's thread.
  private func value(_ path: String, in json: String) -> String? {
    let found = Monitor<String??>(nil)
    SystemThread.start("json") {
      let value = JSONPath(path)?.value(in: Array(json.utf8))
      found.update { $0 = .some(value) }
    }
    return found.wait { $0 }
  }

  private func nested(_ depth: Int, _ value: String) -> String {
    String(repeating: "[", count: depth) + value + String(repeating: "]", count: depth)
  }

  @Test(arguments: [300, 10_000, 500_000]) func anAnswerNestedDeeplyIsNotReadAndNoTrap(_ depth: Int) {
    #expect(value("a", in: "{\"a\":\"b\",\"c\":\(nested(depth, "1"))}") == nil)
    #expect(value("a", in: String(repeating: "{\"a\":", count: depth)) == nil)
    #expect(value("a", in: String(repeating: "[", count: depth)) == nil)
  }

  @Test func valuesAreFoundBelowManyLevelsOfNesting() {
    #expect(value("a", in: "{\"a\":\"b\",\"c\":\(nested(60, "1"))}") == "b")
    #expect(value("$" + String(repeating: "[0]", count: 60), in: nested(60, "\"x\"")) == "x")
    // Brackets within a string are text, also after an escaped quote.
    let brackets = String(repeating: "[{", count: 500)
    #expect(value("a", in: "{\"b\":\"\\\"\(brackets)\\\\\",\"a\":7}") == "7")
  }
}
