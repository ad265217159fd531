extension StreamCheck {
  public static let all = events
}
