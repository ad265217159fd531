import BlobHTTP

/// A web server or proxy for whose configuration the doctor knows lines.
enum ServerProgram: String, Sendable, CaseIterable {
  case nginx
  case apache = "Apache"
  case caddy = "Caddy"
  case haproxy

  /// The program whose own error page the content is, or else the first one that `Via` or `Server` names; nil: none.
  init?(of response: HTTPResponse) {
    if let maker = Self(ofPage: response) {
      self = maker
      return
    }
    for name in ["Via", "Server"] {
      for value in response.headers.list(name) {
        if let found = Self(named: value) {
          self = found
          return
        }
      }
    }
    return nil
  }

  /// A page passes through other programs, which replace `Server`.
  private init?(ofPage response: HTTPResponse) {
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
