#if canImport(ObjectiveC)
  import CoreFoundation
  import Foundation

  /// The private selectors that CFNetwork calls on a stream that is passed to it as a CFReadStream.
  extension BlobInputStream {
    @objc(_scheduleInCFRunLoop:forMode:)
    func schedule(inCoreLoop loop: CFRunLoop, forMode mode: CFString) {
      core.schedule { $0.add(nil, loop, RunLoop.Mode(mode as String)) }
    }

    @objc(_unscheduleFromCFRunLoop:forMode:)
    func remove(fromCoreLoop loop: CFRunLoop, forMode mode: CFString) {
      core.signal.remove(nil, loop, RunLoop.Mode(mode as String))
    }

    @objc(_setCFClientFlags:callback:context:)
    func setCoreClient(
      _ flags: CFOptionFlags, callback: CFReadStreamClientCallBack?,
      context: UnsafeMutablePointer<CFStreamClientContext>?
    ) -> Bool {
      guard let callback, let context = context?.pointee else { return setClient(nil) }
      let (retain, release) = (context.retain, context.release)
      let client = StreamClient.Context(
        version: context.version, info: context.info,
        retain: retain.map { retain in { @Sendable in retain($0) } },
        release: release.map { release in { @Sendable in release($0) } })
      return setClient(
        StreamClient(Stream.Event(rawValue: flags), context: client) { stream, event, info in
          let bridged = unsafeBitCast(stream as InputStream, to: CFReadStream.self)
          callback(bridged, CFStreamEventType(rawValue: event.rawValue), info)
        })
    }
  }
#endif
