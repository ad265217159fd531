extension ChaosProxy {
  /// Assigns a fault to each connection in order; connections after the last fault get none.
  public struct Schedule: Sendable {
    private let faults: [Fault]

    /// Gives each connection the next fault in this order. Connections after the last one have none.
    public init(_ faults: [Fault]) { self.faults = faults }

    /// `count` random faults at byte offsets below `span`. The same seed gives the same faults. `longest` limits
    /// stalls; late deliveries take at most ten times as long.
    public init(seed: UInt64, count: Int = 16, span: Int = 1 << 20, longest: Duration = .milliseconds(200)) {
      var random = SplitMix64(seed: seed)
      faults = (0..<count).map { _ in
        let after = Int.random(in: 1...max(1, span), using: &random)
        return switch Int.random(in: 0..<7, using: &random) {
        case 0: .cutUp(after: after)
        case 1: .cutDown(after: after % 300 + 1)
        case 2: .reset(after: after)
        case 3: .stall(after: after, for: longest * Double.random(in: 0...1, using: &random))
        case 4: .dropResponse(1 + after % 3)
        case 5:
          .late(
            after: after, taking: Int.random(in: 1...max(1, span), using: &random),
            over: longest * 10 * Double.random(in: 0...1, using: &random))
        default: .none
        }
      }
    }

    /// The fault of a connection, whose number counts from 0.
    public func fault(for connection: Int) -> Fault {
      faults.indices.contains(connection) ? faults[connection] : .none
    }
  }
}
