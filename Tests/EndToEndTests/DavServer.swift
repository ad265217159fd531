import Foundation
import Testing

/// WebDAV servers of other projects.
enum DavServer: String, CaseIterable {
  case nginx
  case apache
  case wsgidav
  case rclone

  var peer: Peer {
    switch self {
    case .nginx: .nginx
    case .apache: .apache
    case .wsgidav: .wsgidav
    case .rclone: .rclone
    }
  }

  /// Starts the server with `folder` as its root. `rules` are added to the configuration of Apache.
  func start(into folder: String, rules: [String] = [], in scratch: Scratch) async throws -> PeerServer {
    let program = try #require(peer.path, peer.reason)
    switch self {
    case .nginx:
      return try await .nginx(into: folder, methods: "PUT DELETE MKCOL COPY MOVE", in: scratch)
    case .apache:
      return try await PeerServer(program, in: scratch) { port in
        let run = try scratch.folder("apache")
        // The server does not run as root, so it needs access to these folders.
        if getuid() == 0 { for path in [scratch.path, folder, run] { chmod(path, 0o777) } }
        let configuration = """
          ServerRoot \(run)
          ServerName localhost
          Listen 127.0.0.1:\(port)
          PidFile \(run)/pid
          ErrorLog /dev/stderr
          LogLevel error
          \(["mpm_event", "authz_core", "dav", "dav_fs"].map(Self.module).joined(separator: "\n"))
          \(getuid() == 0 ? "User www-data\nGroup www-data" : "")
          Mutex pthread
          DavLockDB \(run)/lock
          DocumentRoot \(folder)
          \(rules.joined(separator: "\n"))
          <Directory \(folder)>
            Dav On
            Require all granted
          </Directory>
          """
        try configuration.write(toFile: run + "/apache.conf", atomically: true, encoding: .utf8)
        // One process with all threads: its workers would outlive a process that is killed.
        return ["-f", run + "/apache.conf", "-X"]
      }
    case .wsgidav:
      return try await PeerServer(program, in: scratch) { port in
        ["--host", "127.0.0.1", "--port", "\(port)", "--root", folder, "--auth", "anonymous", "--no-config", "-qq"]
      }
    case .rclone:
      return try await PeerServer(program, in: scratch) { port in
        ["serve", "webdav", folder, "--addr", "127.0.0.1:\(port)", "--config", scratch.path("rclone.conf")]
      }
    }
  }

  private static func module(_ name: String) -> String {
    "LoadModule \(name)_module /usr/lib/apache2/modules/mod_\(name).so"
  }
}
