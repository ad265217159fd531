/// A mistake in the configuration of a proxy, and how the doctor names it.
struct DoctorCase: Sendable, CustomStringConvertible {
  let front: DoctorFront
  /// The lines that are wrong.
  let wrong: [String]
  var place = DoctorFront.Place.location
  let kind: String
  /// Whether the lines that the doctor prints mend it: instead of the wrong ones, or before them.
  enum Mending: Sendable { case instead, before, byHand }
  var mending = Mending.instead
  /// Before the URL.
  var uploadProtocol = ""
  var path = "/"
  var serverOptions: [String] = []
  var options: [String] = []
  /// Contained in the observation of the finding.
  var says = ""
  var description: String { "\(front.rawValue): \(wrong.joined(separator: " "))" }

  private init(
    _ front: DoctorFront, _ wrong: String..., at place: DoctorFront.Place = .location, is kind: String,
    _ mending: Mending = .instead
  ) {
    (self.front, self.wrong, self.place, self.kind, self.mending) = (front, wrong, place, kind, mending)
  }

  private func with(_ change: (inout DoctorCase) -> Void) -> DoctorCase {
    var changed = self
    change(&changed)
    return changed
  }

  /// Fields of tus that a proxy removes.
  private static let fields: [DoctorCase] = [
    DoctorCase(.nginx, "proxy_hide_header Upload-Offset;", is: "field", .byHand)
      .with { $0.says = "removes Upload-Offset from responses" },
    DoctorCase(.apache, "Header unset Upload-Offset", is: "field", .byHand)
      .with { $0.says = "removes Upload-Offset from responses" },
    DoctorCase(.nginx, "proxy_set_header Upload-Offset \"\";", is: "field", .byHand)
      .with { $0.says = "removes Upload-Offset from requests" },
    DoctorCase(.apache, "RequestHeader unset Upload-Offset", is: "field", .byHand)
      .with { $0.says = "removes Upload-Offset from requests" },
    DoctorCase(.nginx, "proxy_hide_header Tus-Resumable;", is: "field", .byHand)
      .with { $0.says = "removes Tus-Resumable from responses" },
    DoctorCase(.caddy, "header_up -Tus-Resumable", is: "field", .byHand)
      .with { $0.says = "removes Tus-Resumable from requests" },
  ]

  static let all: [DoctorCase] = fields + others

  private static let others: [DoctorCase] = [
    DoctorCase(.nginx, "client_max_body_size 1m;", is: "body-limit"),
    DoctorCase(.nginx, "client_max_body_size 1500k;", is: "body-limit"),
    DoctorCase(.nginx, "proxy_request_buffering on;", is: "buffering"),
    DoctorCase(.nginx, "client_body_timeout 4s;", is: "body-timeout").with { $0.options = ["--pause", "8s"] },
    DoctorCase(.nginx, "keepalive_timeout 0;", is: "keep-alive"),
    DoctorCase(.nginx, "limit_except GET OPTIONS POST PUT DELETE { deny all; }", is: "method", .byHand),
    DoctorCase(.nginx, "if ($request_method = DELETE) { return 405; }", is: "method", .byHand),
    DoctorCase(.nginx, "proxy_redirect ~^(.*)$ http://127.0.0.1:1/$1;", is: "location"),
    DoctorCase(.nginx, "proxy_redirect ~^(.*)$ https://127.0.0.1/$1;", is: "location"),
    DoctorCase(.nginx, "proxy_redirect ~^(.*)$ /$1;", is: "location").with { $0.path = "/in/" },
    DoctorCase(.nginx, "proxy_hide_header Access-Control-Expose-Headers;", is: "cors", .byHand)
      .with { ($0.serverOptions, $0.options) = (["--allow-origin", "*"], ["--origin", "https://app.example"]) },
    DoctorCase(.nginx, "add_header Access-Control-Allow-Origin * always;", is: "cors", .byHand)
      .with { ($0.serverOptions, $0.options) = (["--allow-origin", "*"], ["--origin", "https://app.example"]) },
    DoctorCase(.nginx, "return 502;", is: "backend", .byHand),
    DoctorCase(.nginx, "if ($request_method = OPTIONS) { return 403; }", is: "method", .byHand)
      .with { $0.uploadProtocol = "tus+" },
    DoctorCase(.nginx, is: "interim-responses", .byHand).with { $0.uploadProtocol = "resumable+" },

    DoctorCase(.apache, "AllowMethods GET HEAD OPTIONS POST PUT DELETE", is: "method"),
    // A busy machine takes longer than a second for a body without a pause, or for an answer.
    DoctorCase(.apache, "RequestReadTimeout body=4", at: .server, is: "body-timeout")
      .with { $0.options = ["--pause", "8s"] },
    DoctorCase(.apache, "KeepAlive Off", at: .server, is: "keep-alive"),
    DoctorCase(.apache, "Header edit Location ^ http://127.0.0.1:1/", is: "location"),
    DoctorCase(.apache, "Header edit Location ^ /", is: "location").with { $0.path = "/in/" },

    DoctorCase(
      .haproxy, "http-request deny deny_status 413 if { req.hdr_val(content-length) gt 10485760 }", is: "body-limit",
      .byHand),
    DoctorCase(.haproxy, "http-request deny deny_status 405 if { method PATCH }", is: "method", .before),
    DoctorCase(.haproxy, "timeout server 4s", at: .server, is: "body-timeout").with { $0.options = ["--pause", "8s"] },
    DoctorCase(.haproxy, "option httpclose", is: "keep-alive"),
    DoctorCase(.haproxy, "http-response replace-header Location ^ http://127.0.0.1:1/", is: "location"),
    DoctorCase(.haproxy, "http-request deny deny_status 503", is: "backend", .byHand),

    DoctorCase(.caddy, "request_body {", "  max_size 10MB", "}", at: .server, is: "body-limit", .byHand),
    DoctorCase(.caddy, "header_down Location ^ http://127.0.0.1:1/", is: "location"),
  ]
}
