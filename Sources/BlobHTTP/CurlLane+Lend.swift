import Blobs
import CCurl

#if canImport(Glibc)
  import Glibc

  extension CurlLane {
    /// Whether the body can go past libcurl: a file, over a connection that carries our bytes as they are.
    func canLend(_ transfer: Transfer) -> Bool {
      guard lends, transfer.job.request.url.scheme == "http", shape.proxy == nil, let body = transfer.job.body,
        let reader = transfer.reader
      else { return false }
      transfer.lent = LentBody(body, reader)
      return transfer.lent != nil
    }

    /// The head comes next. When it comes for the second time, on another connection, the body begins anew too.
    func beginLending(_ transfer: Transfer, from port: Int32) -> Bool {
      guard transfer.lent != nil else { return true }
      if transfer.attempts > 1 {
        guard rewind(to: 0) == CURL_SEEKFUNC_OK else { return false }
        transfer.lent = LentBody(transfer.job.body!, transfer.reader!)
        if transfer.lent == nil {
          let message = "\(transfer.job.name): the source changed its kind before it could be sent again"
          transfer.failure = TransportError(.source, message, cause: BlobError(.changed, message))
          return false
        }
      }
      // Asking libcurl for it gives nothing before the connection is done with its first request.
      transfer.lent!.socket = sockets.first { localPort(of: $0) == port } ?? -1
      if transfer.lent!.socket >= 0 { return true }
      lends = false
      transfer.failure = TransportError(.broken, "\(transfer.job.name): libcurl's connection is not known")
      return false
    }

    /// Sends of a lent body what the connection takes, and waits with libcurl where it takes nothing. false: there is
    /// nothing to lend now.
    func lend(_ transfer: Transfer, _ wait: Int32) throws(TransportError) -> Bool {
      guard let body = transfer.lent, body.isHeadSent, !body.isBroken, body.sent < body.length else { return false }
      while !transfer.job.isCancelled {
        var outcome = LentBody.Outcome.moved
        let failure = outside(transfer) { () throws(BlobError) in
          outcome = try body.send(transfer.job.cancellation)
        }
        if let failure { throw failure }
        switch outcome {
        case .moved:
          transfer.given = body.sent
          report(transfer)
          if body.sent < body.length { continue }
          fb_curl_set_long(easy, CURLOPT_FORBID_REUSE, 0)
          return true
        case .blocked:
          var room = curl_waitfd(fd: body.socket, events: Int16(CURL_WAIT_POLLOUT), revents: 0)
          var ready: Int32 = 0
          curl_multi_poll(multi, &room, 1, wait, &ready)
          // Else libcurl has something to read, somebody woke us, or it took too long.
          if ready != 1 || Int32(room.revents) & CURL_WAIT_POLLOUT == 0 { return true }
        case .broken:
          body.isBroken = true
          return true
        }
      }
      return true
    }
  }

  func localPort(of socket: Int32) -> Int32? {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
        guard getsockname(socket, general, &size) == 0 else { return nil }
        // The port stands at the same place in both families.
        return general.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        }
      }
    }
  }

  /// libcurl is about to connect.
  func socketOpened(_ context: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ purpose: curlsocktype) -> Int32 {
    CurlLane.from(context).sockets.append(socket)
    return CURL_SOCKOPT_OK
  }

  func hearOfHead(
    _ easy: UnsafeMutableRawPointer?, _ type: curl_infotype, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int,
    _ context: UnsafeMutableRawPointer?
  ) -> Int32 {
    if type != CURLINFO_HEADER_OUT { return 0 }
    CurlLane.from(context).transfer?.lent?.follows(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
  }
#else
  extension CurlLane {
    func canLend(_ transfer: Transfer) -> Bool { false }
    func beginLending(_ transfer: Transfer, from port: Int32) -> Bool { true }
    func lend(_ transfer: Transfer, _ wait: Int32) throws(TransportError) -> Bool { false }
  }
#endif
