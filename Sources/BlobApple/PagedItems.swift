import Blobs

/// Items that come in pages from calls that block. Each loop makes these calls on a thread of its own, and only once it has
/// used the page before.
package struct PagedItems<Item: Sendable>: AsyncSequence, Sendable {
  /// `open` returns a function that returns the next page. An empty page is the end.
  package typealias Open = @Sendable () throws(BlobError) -> () -> [Item]

  private let open: Open

  package init(_ open: @escaping Open) { self.open = open }

  package func makeAsyncIterator() -> Iterator { Iterator(pages: Pages(open)) }

  package struct Iterator: AsyncIteratorProtocol {
    fileprivate let pages: Pages
    /// The last item comes next, so that an item that was returned is not kept with the page.
    private var page: [Item] = []

    fileprivate init(pages: Pages) { self.pages = pages }

    package mutating func next() async throws(BlobError) -> Item? {
      if Task.isCancelled { throw BlobError(.cancelled, "list photos: cancelled") }
      if page.isEmpty { page = try await pages.next().reversed() }
      return page.popLast()
    }

    package mutating func next(isolation actor: isolated (any Actor)?) async throws(BlobError) -> Item? {
      try await next()
    }
  }

  fileprivate actor Pages {
    private nonisolated let executor = BlockingExecutor("fullbore-photos")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private let open: Open
    private var nextPage: (() -> [Item])?

    init(_ open: @escaping Open) { self.open = open }

    func next() throws(BlobError) -> [Item] {
      if let nextPage { return nextPage() }
      let first = try open()
      nextPage = first
      return first()
    }
  }
}

/// How far a list that is read in pages has been read.
package struct PagePosition: Sendable {
  private var next = 0

  package init() {}

  /// Returns the items that `items` makes from the next `size` elements of a list of `count`. If it makes none from them, the
  /// elements after them are used. Empty: the list has ended.
  package mutating func next<Item>(_ size: Int, of count: Int, items: (Range<Int>) -> [Item]) -> [Item] {
    while next < count {
      let page = next..<(next + min(max(1, size), count - next))
      next = page.upperBound
      let found = items(page)
      if !found.isEmpty { return found }
    }
    return []
  }
}
