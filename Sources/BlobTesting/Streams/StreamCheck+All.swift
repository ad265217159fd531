extension StreamCheck {
  /// All checks of the contract of streams.
  public static let all = events + reading + offsets + faults + clients
}
