import BlobHTTP

/// Lets pages of the allowed origins use the server from a browser. Fetch Standard §3.3, "CORS protocol".
enum CrossOrigin {
  /// Adds the CORS header fields to a response; does nothing if the request has no allowed origin.
  static func complete(_ reply: inout Reply, to request: Request, _ service: Service) {
    let origins = service.options.allowedOrigins
    if origins.isEmpty { return }
    let isAnyone = origins.contains("*")
    if !isAnyone { reply.headers.add("Vary", "Origin") }
    guard let origin = request.headers["Origin"], isAnyone || origins.contains(origin) else { return }
    reply.headers["Access-Control-Allow-Origin"] = isAnyone ? "*" : origin
    guard request.method == "OPTIONS", request.headers["Access-Control-Request-Method"] != nil else {
      reply.headers["Access-Control-Expose-Headers"] = exposed
      return
    }
    reply.headers["Access-Control-Allow-Methods"] =
      service.options.isReadOnly ? "GET, HEAD" : "GET, HEAD, PUT, POST, PATCH, DELETE"
    reply.headers["Access-Control-Allow-Headers"] = allowed
    reply.headers["Access-Control-Max-Age"] = "86400"
  }

  /// Request header fields for scripts: tus 1.0, IETF resumable uploads, PUT with preconditions, ranges.
  private static let allowed = [
    "Authorization", "Content-Digest", "Content-Disposition", "Content-Type", UploadGroup.field, "If-Match",
    "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Range", "Repr-Digest", "Tus-Resumable",
    "Upload-Checksum", "Upload-Complete", "Upload-Concat", "Upload-Defer-Length", "Upload-Draft-Interop-Version",
    "Upload-Incomplete", "Upload-Length", "Upload-Metadata", "Upload-Offset", "Want-Repr-Digest",
    "X-HTTP-Method-Override", "X-OC-MTime", "X-Requested-With",
  ].joined(separator: ", ")

  /// Response header fields that scripts may read, besides the CORS-safelisted ones.
  private static let exposed = [
    "Accept-Encoding", "Accept-Patch", "Accept-Query", "Accept-Ranges", "Allow", "Content-Disposition",
    "Content-Location",
    "Content-Range", "ETag", ServerError.kindField, UploadGroup.field, "Location", "Repr-Digest", "Retry-After",
    "Tus-Checksum-Algorithm", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version", "Upload-Complete",
    "Upload-Concat", "Upload-Defer-Length",
    "Upload-Draft-Interop-Version", "Upload-Expires", "Upload-Incomplete", "Upload-Length", "Upload-Limit",
    "Upload-Metadata", "Upload-Offset", UploadOutcomeField.name, "Want-Content-Digest", "WWW-Authenticate",
    "X-OC-MTime",
  ].joined(separator: ", ")
}
