import Foundation

/// Simulates a system's photo library: it fetches on its own queue and calls back on the main queue.
final class PhotoLibrary: Sendable {
  static let shared = PhotoLibrary()

  enum Answer: Sendable {
    case found(length: Int)
    case data(Data)
    case end
    case missing
  }

  private let queue = DispatchQueue(label: "photo library")

  /// Calls `handler` on the main queue. It returns whether to continue; the next piece is fetched after that.
  func request(_ name: String, _ handler: @escaping @Sendable (Answer) -> Bool) {
    let pieces = (0..<48).map { number in Data(repeating: UInt8(number), count: 65_536) }
    answer(name == "IMG_0001.HEIC" ? .found(length: 48 * 65_536) : .missing, pieces[...], handler)
  }

  private func answer(_ answer: Answer, _ left: ArraySlice<Data>, _ handler: @escaping @Sendable (Answer) -> Bool) {
    DispatchQueue.main.async { [self] in
      guard handler(answer) else { return }
      switch answer {
      case .end, .missing: return
      case .found, .data: break
      }
      queue.async { [self] in
        self.answer(left.first.map { .data($0) } ?? .end, left.dropFirst(), handler)
      }
    }
  }
}
