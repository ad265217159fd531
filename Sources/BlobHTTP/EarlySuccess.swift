extension HTTPHead {
  /// The error for a premature success response; nil if the response is plausible.
  ///
  /// A server that answers 2xx before the whole body was handed to the connection cannot have the body. Every transport
  /// calls this when the head of the final response is complete. A redirect or an error response may come at any time.
  /// - `sent`: bytes of the body that were handed to the connection in this attempt.
  /// - `length`: bytes of the body; nil if the length is known only at its end.
  /// - `isWhole`: the whole body was handed over, including the last chunk and the trailers if it has them.
  package func earlySuccess(
    to request: @autoclosure () -> String, from server: @autoclosure () -> String, sent: Int64, of length: Int64?,
    isWhole: Bool
  ) -> TransportError? {
    if isWhole || !(200..<300 ~= status) { return nil }
    let rest = length.map { "of \($0)" } ?? "of a body that had not ended"
    return TransportError(.broken, "\(request()): \(server()) answered \(status) after \(sent) bytes were sent \(rest)")
  }
}
