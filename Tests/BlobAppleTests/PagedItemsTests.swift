import BlobApple
import Blobs
import Synchronization
import Testing

/// Lists that are read by calls that block, in asynchronous code.
struct PagedItemsTests {
  @Test func allItemsComeInTheirOrder() async throws {
    var found: [Int] = []
    for try await item in pages([[1, 2], [3], [4, 5, 6], []]) { found.append(item) }
    #expect(found == [1, 2, 3, 4, 5, 6])
  }

  @Test func aPageIsReadOnlyWhenTheOneBeforeIsUsed() async throws {
    let asked = Atomic(0)
    var iterator = PagedItems {
      { [asked.wrappingAdd(1, ordering: .relaxed).newValue, 0] }
    }.makeAsyncIterator()
    for page in 1...3 {
      #expect(try await iterator.next() == page)
      #expect(try await iterator.next() == 0)
      #expect(asked.load(ordering: .relaxed) == page)
    }
  }

  @Test func theErrorOfOpeningEndsTheLoop() async throws {
    let items = PagedItems<Int> { () throws(BlobError) in throw BlobError(.permission, "access is denied") }
    await #expect { for try await _ in items {} } throws: { ($0 as? BlobError)?.code == .permission }
  }

  @Test func aCancelledTaskEndsTheLoopWithAnError() async throws {
    let items = pages([[1], []])
    let loop = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      for try await _ in items {}
    }
    await #expect { try await loop.value } throws: { ($0 as? BlobError)?.code == .cancelled }
  }

  /// Assets without files, for example while iCloud fills a library, are not the end of the list.
  @Test(arguments: [1, 3, 4, 5, 100, Int.max]) func aPageOfNothingIsNotTheEnd(_ size: Int) {
    let lists = [[1], [], [], [], [], [], [2, 3], [], [4], [], []]
    var (position, found) = (PagePosition(), [Int]())
    while case let page = position.next(size, of: lists.count, items: { $0.flatMap { lists[$0] } }), !page.isEmpty {
      found += page
    }
    #expect(found == [1, 2, 3, 4])
    #expect(position.next(size, of: lists.count) { $0.flatMap { lists[$0] } }.isEmpty)
    var none = PagePosition()
    #expect(none.next(size, of: 0) { Array($0) }.isEmpty)
  }

  private func pages(_ pages: [[Int]]) -> PagedItems<Int> {
    PagedItems {
      var rest = pages[...]
      return { rest.popFirst() ?? [] }
    }
  }
}
