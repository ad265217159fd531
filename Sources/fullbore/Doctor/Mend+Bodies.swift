// Lines for proxies that change how requests and responses pass.
extension Mend {
  /// For a proxy that limits the size of bodies.
  static let bodyLimit = [
    Mend(.nginx, in: place(.nginx), "client_max_body_size 0;"),
    Mend(.apache, in: place(.apache), "LimitRequestBody 0"),
    .advice(.caddy, "remove request_body max_size from the site."),
    .advice(.haproxy, "remove the rule that denies by content-length or req.body_size, or raise its number."),
    .advice(nil, "if none of these stands before the server, the limit is its own, or that of the hosting provider."),
  ]

  /// For a proxy that forwards a request only once it has all of it.
  static let buffering = [
    Mend(.nginx, in: place(.nginx), "proxy_request_buffering off;", "proxy_http_version 1.1;"),
    Mend(
      .apache, in: place(.apache), "<IfModule security2_module>", "  SecRequestBodyAccess Off", "</IfModule>",
      "SetEnv proxy-sendchunked 1"),
    .advice(.caddy, "remove request_buffers from reverse_proxy."),
    Mend(.haproxy, in: "in the frontend and in the backend", "no option http-buffer-request"),
  ]

  /// For a proxy that ends requests whose body pauses.
  static let bodyTimeout = [
    Mend(
      .nginx, in: place(.nginx), "client_body_timeout 300s;", "proxy_send_timeout 300s;", "proxy_read_timeout 300s;"),
    Mend(
      .apache, in: "in the virtual host", "RequestReadTimeout header=20-40,MinRate=500 body=0", "Timeout 300",
      "ProxyTimeout 300"),
    Mend(
      .caddy, in: "in the global options", "servers {", "  timeouts {", "    read_body 0", "  }", "}"),
    Mend(
      .haproxy, in: "in the defaults section, or the frontend and the backend", "timeout client 5m", "timeout server 5m"
    ),
  ]

  /// For a proxy that refuses a method.
  static func method(_ name: String) -> [Mend] {
    let all = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
    let list = (all.contains(name) ? all : all + ["MKCOL", "MOVE", "PROPFIND"]).joined(separator: " ")
    return [
      .advice(.nginx, "add \(name) to limit_except, or to the methods that an 'if ($request_method …)' lets pass."),
      Mend(.apache, in: "in the Location block", "AllowMethods reset"),
      .advice(.apache, "or add \(name) to <LimitExcept> or <Limit>: \(list)"),
      .advice(.caddy, "add \(name) to the matcher 'method' of the site."),
      Mend(
        .haproxy, in: "in the frontend, before the rule that denies", "http-request allow if { method \(name) }"),
    ]
  }

  /// For a proxy behind which the server does not know its own address. `prefix`: the path that the proxy removes.
  static func location(prefix: String?) -> [Mend] {
    if let prefix {
      return [
        Mend(.nginx, in: place(.nginx), "proxy_redirect / \(prefix);"),
        Mend(.apache, in: place(.apache), "Header edit Location ^/ \(prefix)"),
        Mend(.caddy, in: "in reverse_proxy", "header_down Location ^/ \(prefix)"),
        Mend(.haproxy, in: "in the backend", "http-response replace-header Location ^/(.*) \(prefix)\\1"),
        .advice(
          nil, "or tell the server its path (tusd: -base-path \(prefix)), and let the proxy pass it on unchanged."),
      ]
    }
    return [
      Mend(
        .nginx, in: place(.nginx), "proxy_set_header Host $http_host;", "proxy_set_header X-Forwarded-Host $http_host;",
        "proxy_set_header X-Forwarded-Proto $scheme;"),
      Mend(
        .apache, in: place(.apache), "ProxyPreserveHost On",
        "RequestHeader set X-Forwarded-Proto expr=%{REQUEST_SCHEME}"),
      Mend(.caddy, in: "in reverse_proxy", "header_up Host {http.request.hostport}"),
      Mend(
        .haproxy, in: "in the frontend", "http-request set-header X-Forwarded-Host %[req.hdr(Host)]",
        "http-request set-header X-Forwarded-Proto https if { ssl_fc }"),
      .advice(nil, "and let the server believe these fields (tusd: -behind-proxy)."),
    ]
  }

  /// For a proxy that passes no interim responses on.
  static let interim = [
    .advice(
      .nginx,
      "nginx passes no 104 on: let uploads go by tus, with tus+ before the URL, or put haproxy or Apache in its place."),
    Mend(.apache, in: place(.apache), "SetEnv proxy-interim-response RFC"),
    .advice(.caddy, "caddy passes 104 on since 2.6: update it."),
    Mend(.haproxy, in: "in the frontend", "http-request del-header Upload-Interim"),
    .advice(nil, "or use tus, which needs no interim responses: tus+ before the URL."),
  ]

  /// For a server that closes each connection.
  static let keepAlive = [
    Mend(.nginx, in: place(.nginx), "keepalive_timeout 75s;"),
    Mend(.apache, in: "in the server's configuration", "KeepAlive On"),
    Mend(.haproxy, in: "in the frontend", "option http-keep-alive"),
    .advice(.caddy, "remove keepalive off."),
  ]

  /// For a proxy whose server does not answer.
  static let backend = [
    Mend.advice(.nginx, "see its error_log: is the address of proxy_pass right, and does the server run there?"),
    .advice(.apache, "see its ErrorLog: is the address of ProxyPass right, and does the server run there?"),
    .advice(.caddy, "see its log: is the address of reverse_proxy right, and does the server run there?"),
    .advice(.haproxy, "see its log and 'show servers state': is the address of server right, and does it run there?"),
  ]

  /// For a proxy that removes fields of CORS, or adds them a second time.
  static func crossOrigin(isTwice: Bool) -> [Mend] {
    let names =
      ["Origin", "Methods", "Headers"].map { "Access-Control-Allow-\($0)" } + ["Access-Control-Expose-Headers"]
    if isTwice {
      return [
        .advice(.nginx, "remove add_header Access-Control-Allow-Origin: the server sends this field itself."),
        .advice(.apache, "remove Header add Access-Control-Allow-Origin: the server sends this field itself."),
        .advice(.caddy, "remove header Access-Control-Allow-Origin: the server sends this field itself."),
        .advice(.haproxy, "remove http-response add-header Access-Control-Allow-Origin: the server sends it itself."),
      ]
    }
    return field(names.joined(separator: ", "), of: .responses)
      + [.advice(nil, "and let OPTIONS requests reach the server.")]
  }

  /// The messages from which a proxy removes a field.
  enum Direction: String { case requests, responses }

  /// For a proxy that removes fields.
  static func field(_ names: String, of messages: Direction) -> [Mend] {
    let isRequest = messages == .requests
    return [
      .advice(.nginx, "remove \(isRequest ? "the empty proxy_set_header" : "proxy_hide_header") of \(names)."),
      .advice(.apache, "remove \(isRequest ? "RequestHeader" : "Header") unset of \(names)."),
      .advice(.caddy, "remove \(isRequest ? "header_up" : "header_down") of \(names) from reverse_proxy."),
      .advice(.haproxy, "remove \(isRequest ? "http-request" : "http-response") del-header of \(names)."),
    ]
  }

  private static func place(_ program: ServerProgram) -> String {
    switch program {
    case .nginx: "in the location or server block"
    case .apache: "in the virtual host or the Location block"
    case .caddy: "in the site"
    case .haproxy: "in the frontend"
    }
  }
}
