import BlobHTTP

/// A web server or proxy for whose configuration the doctor knows lines.
enum ServerProgram: String, Sendable, CaseIterable {
  case nginx
  case apache = "Apache"
  case caddy = "Caddy"
  case haproxy

  /// The first program that `Server` or `Via` names, or whose own error page the content is; nil: none.
  init?(of response: HTTPResponse) {
    for name in ["Via", "Server"] {
      for value in response.headers.list(name) {
        if let found = Self(named: value) {
          self = found
          return
        }
      }
    }
    if response.isSuccess { return nil }
    let text = String(decoding: response.body.prefix(1000), as: UTF8.self)
    if text.contains("<center>nginx") || text.contains("<center>openresty") {
      self = .nginx
    } else if text.contains("<address>Apache") {
      self = .apache
    } else if text.hasPrefix("<html><body><h1>\(response.status) ") {
      // haproxy sends no field with its name; its pages begin like this.
      self = .haproxy
    } else {
      return nil
    }
  }

  private init?(named value: String) {
    let value = value.lowercased()
    if value.contains("nginx") || value.contains("openresty") {
      self = .nginx
    } else if value.contains("apache") {
      self = .apache
    } else if value.contains("caddy") {
      self = .caddy
    } else if value.contains("haproxy") {
      self = .haproxy
    } else {
      return nil
    }
  }
}
