import Blobs

/// A transport that tells the answer on the thread that has it, so that the next request can begin there: for small
/// bodies, where tasks that are made, switched to and woken would cost more than all the rest.
package protocol StartingTransport: Transport {
  /// What `send` would do, once it is started; nil: the request cannot be sent as it is, and `send` says why.
  func exchange(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) -> (any StartableExchange)?
}

/// One request that may be under way. Whoever starts it keeps the transport.
package protocol StartableExchange: AnyObject, Sendable {
  /// To be called once. `answer` is called once, on any thread, perhaps before this returns; it must be short.
  func start(_ answer: @escaping @Sendable (Result<HTTPResponse, TransportError>) -> Void)

  /// Ends it with `.cancelled`, at any time. Without effect once the answer is there.
  func cancel()
}
