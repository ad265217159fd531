extension HTTPHead {
  /// Why this final head is not believed; nil: it is.
  ///
  /// A server that answers 2xx before the whole body was handed to the connection cannot have the body. Every transport
  /// asks here, at the moment when the head is complete. A redirect or a refusal is an answer at any time.
  /// - `sent`: bytes of the body that were handed to the connection in this attempt.
  /// - `length`: of the body; nil where only its end will tell.
  /// - `isWhole`: the whole body was handed over, with the last chunk and the trailers where it has them.
  package func earlySuccess(
    to request: String, from server: String, sent: Int64, of length: Int64?, isWhole: Bool
  ) -> TransportError? {
    if isWhole || !(200..<300 ~= status) { return nil }
    let rest = length.map { "of \($0)" } ?? "of a body that had not ended"
    return TransportError(.broken, "\(request): \(server) answered \(status) after \(sent) bytes were sent \(rest)")
  }
}
