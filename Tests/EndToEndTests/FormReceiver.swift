import Foundation
import Testing

/// Form receivers that use libraries of other projects, in a few lines of Python each. They store the file under its
/// name, write its fields to `fields.json` beside the folder, and respond with JSON that contains its location.
enum FormReceiver: String, CaseIterable {
  case pythonMultipart = "python-multipart"
  case werkzeug
  case aiohttp

  var peer: Peer {
    switch self {
    case .pythonMultipart: .pythonMultipart
    case .werkzeug: .werkzeug
    case .aiohttp: .aiohttp
    }
  }

  func start(into folder: String, in scratch: Scratch) async throws -> PeerServer {
    let python = try #require(peer.path, peer.reason)
    let fields = scratch.path("fields.json")
    return try await PeerServer(python, in: scratch) { port in
      ["-c", Self.common + script, folder, fields, "\(port)"]
    }
  }

  /// `keep` stores the result of `read(size)`; `told` stores the fields and creates the response.
  private static let common = """
    import json, os, sys, threading
    folder, fields_file, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    def place(name):
        name = os.path.basename(name.replace('%22', '"'))
        assert name and not name.startswith('.'), name
        return os.path.join(folder, name)
    def keep(name, read):
        with open(place(name), 'wb') as out:
            while chunk := read(1 << 16): out.write(chunk)
    def told(fields, name):
        # Whole or not at all: several requests come at once.
        part = fields_file + str(threading.get_ident())
        with open(part, 'w') as out: json.dump(fields, out)
        os.replace(part, fields_file)
        return json.dumps({'files': [{'url': '/files/' + name, 'size': os.path.getsize(place(name))}]})

    """

  private var script: String {
    switch self {
    case .pythonMultipart:
      """
      import http.server, python_multipart
      class Take(http.server.BaseHTTPRequestHandler):
          protocol_version = 'HTTP/1.1'
          def log_message(self, *args): pass
          def do_POST(self):
              fields, files = {}, []
              python_multipart.parse_form(
                  {'Content-Type': self.headers['Content-Type'], 'Content-Length': self.headers['Content-Length']},
                  self.rfile, lambda f: fields.update({f.field_name.decode(): f.value.decode()}), files.append)
              file, = files
              assert file.field_name == b'upload', file.field_name
              name = file.file_name.decode()
              file.file_object.seek(0)
              keep(name, file.file_object.read)
              body = told(fields, name).encode()
              self.send_response(201)
              self.send_header('Content-Length', str(len(body)))
              self.end_headers()
              self.wfile.write(body)
      http.server.ThreadingHTTPServer(('127.0.0.1', port), Take).serve_forever()
      """
    case .werkzeug:
      """
      import logging
      from werkzeug import Request, Response, serving
      logging.getLogger('werkzeug').setLevel(logging.ERROR)
      @Request.application
      def take(request):
          file = request.files['upload']
          keep(file.filename, file.stream.read)
          return Response(told(dict(request.form), file.filename), status=201)
      serving.run_simple('127.0.0.1', port, take, threaded=True)
      """
    case .aiohttp:
      """
      from aiohttp import web
      async def take(request):
          fields = {}
          async for part in await request.multipart():
              if part.filename is None:
                  fields[part.name] = await part.text()
                  continue
              assert part.name == 'upload', part.name
              name = part.filename
              with open(place(name), 'wb') as out:
                  while chunk := await part.read_chunk(1 << 16): out.write(chunk)
          return web.Response(text=told(fields, name), status=201)
      app = web.Application()
      app.router.add_post('/{path:.*}', take)
      web.run_app(app, host='127.0.0.1', port=port, print=None)
      """
    }
  }
}
