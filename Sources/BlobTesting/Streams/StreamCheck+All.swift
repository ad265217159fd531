extension StreamCheck {
  public static let all = events + reading + faults + clients
}
