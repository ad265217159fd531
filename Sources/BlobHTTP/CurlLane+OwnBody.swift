import Blobs
import CCurl

#if canImport(Glibc)
  import Glibc

  extension CurlLane {
    /// Whether the body can go past libcurl: where its length is known, and its connection is the lane's to use.
    func canSendBody(_ transfer: Transfer) -> Bool {
      guard sendsBodies, transfer.reader != nil, transfer.length != nil else { return false }
      if transfer.job.request.url.scheme == "https" {
        // Through a proxy that speaks TLS itself there are two of them.
        if !TLSChannel.isPossible || shape.proxy?.scheme == "https" { return false }
      } else if shape.proxy != nil {
        return false
      }
      transfer.own = ownBody(transfer)
      return true
    }

    func ownBody(_ transfer: Transfer) -> any LaneBody {
      let isTLS = transfer.job.request.url.scheme == "https"
      if !isTLS, let lent = LentBody(transfer.job.body!, transfer.reader!) { return lent }
      let length = transfer.length!
      if isTLS { return SealedBody(readFeed(transfer, isTLS: true), length: length) }
      return CopiedBody(aheadFeed(transfer) ?? readFeed(transfer, isTLS: false), length: length)
    }

    private func readFeed(_ transfer: Transfer, isTLS: Bool) -> any BodyFeed {
      let length = transfer.length!
      if shape.takenBuffer == 0 {
        let size = pool.takeBuffer(isTLS: isTLS, for: length)
        // As much again for the records.
        shape.takenBuffer = isTLS ? size + pool.take(size) : size
        if size != piece.count {
          piece.deallocate()
          piece = .allocate(byteCount: size, alignment: 4096)
        }
      }
      return ReadFeed(transfer.reader!, length: length, piece)
    }

    /// nil: it would not pay, or there is too little memory left for it.
    private func aheadFeed(_ transfer: Transfer) -> (any BodyFeed)? {
      let length = transfer.length!
      guard transfer.reader!.info.readAhead > 0, length >= Self.leastAhead else { return nil }
      let size = pool.takeBuffer(isTLS: false, for: length)
      guard size >= Self.leastAlone else {
        pool.returnBuffer(size)
        return nil
      }
      // Larger than for one thread: each time a piece is handed over somebody is woken.
      let piece = 2 * size
      let taken = size + pool.take(AheadFeed.pieces * piece - size)
      let reader = transfer.reader.take()!
      transfer.isReadAhead = true
      return AheadFeed(reader, length: length, piece: piece) { [pool] in pool.returnBuffer(taken) }
    }

    /// Less is read before another thread has begun.
    private static var leastAhead: Int64 { 4 << 20 }
    /// Where so many are under way that there is less for each, they do not wait for each other.
    private static var leastAlone: Int { 256 << 10 }

    /// The head comes next. When it comes for the second time, on another connection, the body begins anew too.
    func beginBody(_ transfer: Transfer, from port: Int32) -> Bool {
      transfer.wire = wire(of: transfer, from: port)
      guard let body = transfer.own else { return true }
      guard let wire = transfer.wire else {
        sendsBodies = false
        transfer.failure = TransportError(.broken, "\(transfer.job.name): libcurl's connection is not known")
        return false
      }
      if transfer.attempts > 1 && body.hasBegun {
        guard rewind(to: 0) == CURL_SEEKFUNC_OK else { return false }
        transfer.own = ownBody(transfer)
      }
      transfer.place = LanePlace(socket: wire.socket)
      transfer.own!.begin(on: wire)
      return true
    }

    /// Asking libcurl for the socket gives nothing before the connection is done with its first request.
    private func wire(of transfer: Transfer, from port: Int32) -> Wire? {
      guard let socket = sockets.first(where: { localPort(of: $0) == port }) else { return nil }
      if transfer.job.request.url.scheme == "http" { return .plain(socket) }
      guard TLSChannel.isPossible, shape.proxy?.scheme != "https", let tls = fb_curl_get_tls(easy) else { return nil }
      let ssl = OpaquePointer(tls)
      if channel?.isOf(ssl) != true { channel = TLSChannel(ssl, on: socket) }
      return channel.map { .sealed($0) }
    }

    /// libcurl closes a connection: what is left of the body is not for the next one that has its number.
    func lost(_ socket: Int32) {
      if transfer?.place.socket == socket { transfer!.place.socket = -1 }
    }

    /// Sends of a body what the connection takes, and waits with libcurl where it takes nothing. false: there is nothing
    /// to send now.
    func sendBody(_ transfer: Transfer, _ wait: Int32) throws(TransportError) -> Bool {
      guard let body = transfer.own, transfer.place.isBodysTurn, body.sent < body.length else { return false }
      let look = LaneLook(after: body)
      while !transfer.job.isCancelled, !look.isDue(for: body) {
        let outcome = try advance(body, transfer)
        if body.sent == body.length {
          fb_curl_set_long(easy, CURLOPT_FORBID_REUSE, 0)
          return true
        }
        switch outcome {
        case .moved: continue
        case .waiting: return false
        case .blocked:
          var room = curl_waitfd(fd: transfer.place.socket, events: Int16(CURL_WAIT_POLLOUT), revents: 0)
          var ready: Int32 = 0
          pool.whileWaiting { _ = curl_multi_poll(multi, &room, 1, wait, &ready) }
          if ready > 0 { pool.stirs() }
          // Else libcurl has something to read, somebody woke us, or it took too long.
          if ready != 1 || Int32(room.revents) & CURL_WAIT_POLLOUT == 0 { return true }
        case .broken:
          transfer.place.socket = -1
          return true
        }
      }
      return true
    }

    /// Hands the connection what it takes now.
    func advance(_ body: any LaneBody, _ transfer: Transfer) throws(TransportError) -> LaneOutcome {
      var outcome = LaneOutcome.moved
      let failure = outside(transfer) { () throws(BlobError) in
        outcome = try body.send(transfer.job.cancellation)
      }
      if let failure { throw failure }
      transfer.given = body.sent
      report(transfer, sent: body.sent)
      return outcome
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
    CurlLane.from(context).transfer?.place.follows(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
  }
#else
  extension CurlLane {
    func canSendBody(_ transfer: Transfer) -> Bool { false }
    func beginBody(_ transfer: Transfer, from port: Int32) -> Bool { true }
    func lost(_ socket: Int32) {}
    func sendBody(_ transfer: Transfer, _ wait: Int32) throws(TransportError) -> Bool { false }
  }
#endif
