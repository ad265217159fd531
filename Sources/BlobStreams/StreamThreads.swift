import Blobs

/// Threads on which streams open and fetch, so that their own methods need not wait. They start as they are needed and
/// end when there is nothing to do; a stream holds one only while it waits for its source.
public final class StreamThreads: Sendable {
  /// Where asynchronous streams open and fetch; 64 at the most.
  public static let fetching = StreamThreads(64)
  /// Where streams for multipart forms open; 4 at the most.
  public static let opening = StreamThreads(4)

  private let pool: BlockingPool

  /// `most`: how many threads there may be at once. Sources that stall hold one each until their stream is closed.
  public init(_ most: Int) { pool = BlockingPool("fullbore-stream", threads: most, patience: .seconds(5)) }

  /// Threads there are now.
  public var count: Int { pool.threads }

  func run(_ work: @escaping @Sendable () -> Void) { pool.submit(work) }
}
