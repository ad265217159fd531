import BlobHTTP

/// Responds to OPTIONS with the supported protocols and limits. It requires no token, because browsers send none in
/// preflight requests.
enum OptionsRoutes {
  /// The status is 200, because Apple's photo uploader asks for it. The other protocols accept any success.
  static func reply(_ headers: HTTPHeaders, _ service: Service) -> Reply {
    var reply = Reply(200, ["Allow": allowed(service.options), "Accept-Ranges": "bytes"])
    let ietf = IETF(headers)
    if service.options.isReadOnly {
      // By this status, that uploader learns that there are no resumable uploads here.
      if ietf?.version != nil { reply.status = 501 }
      return reply
    }
    reply.headers["Tus-Version"] = Tus.version
    reply.headers["Tus-Extension"] = Tus.extensions(joins: service.store.abilities.joining != nil)
    reply.headers["Tus-Checksum-Algorithm"] = BodyDigests.tusNames
    reply.headers["Upload-Limit"] = IETF.offer(
      service.options.maxSize, seconds: service.options.expire.components.seconds, version: ietf?.version ?? 8)
    if service.store.abilities.groups != nil { reply.headers[UploadGroup.field] = UploadGroup.offer }
    reply.headers["Accept-Patch"] = IETF.contentType
    reply.headers["Want-Content-Digest"] = DigestField.offer
    reply.headers[QueryOffer.field] = QueryOffer.text(KnownDigests.algorithms)
    reply.headers["Tus-Max-Size"] = service.options.maxSize.map { String($0) }
    return reply
  }

  static func allowed(_ options: ServerOptions) -> String {
    if options.isReadOnly { return "GET, HEAD, OPTIONS, QUERY" }
    return "GET, HEAD, OPTIONS, QUERY, PUT, POST, PATCH" + (options.allowsDelete ? ", DELETE" : "")
  }
}
