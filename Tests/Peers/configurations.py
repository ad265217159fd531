"""Contents of the servers' configuration files."""

import os


def nginx(scratch, received, port, methods):
    user = "user root;" if os.getuid() == 0 else ""
    temporary = "\n".join(
        f"  {kind}_temp_path {scratch}/{kind};" for kind in ("client_body", "fastcgi", "proxy", "scgi", "uwsgi"))
    return f"""{user}
daemon off;
master_process off;
pid {scratch}/pid;
error_log stderr warn;
events {{}}
http {{
  access_log off;
  client_max_body_size 0;
{temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      root {received};
      dav_methods {methods};
      create_full_put_path {"off" if "MKCOL" in methods else "on"};
    }}
  }}
}}
"""


def apache(scratch, received, port):
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
        for name in ("mpm_event", "authz_core", "dav", "dav_fs"))
    user = "User www-data\nGroup www-data" if os.getuid() == 0 else ""
    return f"""ServerRoot {scratch}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {scratch}/pid
ErrorLog /dev/stderr
LogLevel error
{modules}
{user}
Mutex pthread
DavLockDB {scratch}/lock
DocumentRoot {received}
<Directory {received}>
  Dav On
  Require all granted
</Directory>
"""


def haproxy(port, behind):
    return f"""global
  maxconn 256
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{port}
  default_backend out
backend out
  server one 127.0.0.1:{behind}
"""


def caddy(port, behind):
    return f"""{{
  admin off
  auto_https off
}}
http://127.0.0.1:{port} {{
  reverse_proxy 127.0.0.1:{behind}
}}
"""
