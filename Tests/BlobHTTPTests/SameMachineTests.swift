#if os(Linux)
  import BlobTesting
  import TestSupport
  import Blobs
  import CCurl
  import Platform
  import Testing

  @testable import BlobClient

  @testable import BlobHTTP

  @Suite struct SameMachineTests {
    @Test(arguments: ["http", "https"]) func noConnectionToThisMachineIsPacedOrInherited(_ scheme: String) async throws
    {
      // The peer keeps the connection open while the test looks at it.
      let peer = ScriptedPeer([.readRequest, answer(), .hold])
      let certificate = try Certificate()
      let front = scheme == "https" ? TLSFront(certificate, to: peer.port) : nil
      let url = front?.url() ?? peer.url()
      let transport = SocketTransport(.init(caFile: certificate.path))
      _ = try await transport.put(url, PatternSource(length: 10), length: 10)
      let sockets = OpenSocket.all.filter { $0.peerPort == url.port }
      #expect(sockets.map(\.congestionControl) == ["reno"])
      #expect(sockets.map(\.isOurs) == [true])
      withExtendedLifetime(transport) {}
    }

    @Test(arguments: [
      ("127.0.0.1", true), ("127.200.3.4", true), ("128.0.0.1", false), ("10.0.0.127", false), ("::1", true),
      ("::2", false), ("fe80::1", false), ("::ffff:127.0.0.1", true), ("::ffff:10.0.0.1", false),
    ])
    func loopbackAddressesBelongToThisMachine(_ text: String, _ expected: Bool) {
      var hints = addrinfo()
      hints.ai_flags = AI_NUMERICHOST
      var found: UnsafeMutablePointer<addrinfo>?
      #expect(getaddrinfo(text, "1", &hints, &found) == 0)
      defer { freeaddrinfo(found) }
      // libcurl's structure: the address follows the numbers, and is longer than its declared type.
      let room = UnsafeMutableRawPointer.allocate(byteCount: 256, alignment: 16)
      defer { room.deallocate() }
      let address = room.bindMemory(to: curl_sockaddr.self, capacity: 1)
      address.pointee.family = found!.pointee.ai_family
      let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr)!
      (room + offset).copyMemory(from: found!.pointee.ai_addr, byteCount: Int(found!.pointee.ai_addrlen))
      #expect(SameMachine.contains(address) == expected)
    }
  }
#endif
