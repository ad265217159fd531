import BlobHTTP

/// Responds to OPTIONS with the supported protocols and limits. It requires no token, because browsers send none in
/// preflight requests.
enum OptionsRoutes {
  static func reply(_ service: Service) -> Reply {
    var reply = Reply(204, ["Allow": allowed(service.options), "Accept-Ranges": "bytes"])
    if service.options.isReadOnly { return reply }
    reply.headers["Tus-Version"] = Tus.version
    reply.headers["Tus-Extension"] = Tus.extensions
    reply.headers["Tus-Checksum-Algorithm"] = BodyDigests.tusNames
    reply.headers["Upload-Limit"] = IETF.limit(
      service.options.maxSize, seconds: service.options.expire.components.seconds)
    reply.headers["Accept-Patch"] = IETF.contentType
    reply.headers["Want-Content-Digest"] = DigestField.offer
    reply.headers["Tus-Max-Size"] = service.options.maxSize.map { String($0) }
    return reply
  }

  static func allowed(_ options: ServerOptions) -> String {
    if options.isReadOnly { return "GET, HEAD, OPTIONS" }
    return "GET, HEAD, OPTIONS, PUT, POST, PATCH" + (options.allowsDelete ? ", DELETE" : "")
  }
}
