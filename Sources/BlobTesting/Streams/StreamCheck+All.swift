extension StreamCheck {
  public static let all = events + reading + offsets + faults + clients
}
