"""Uploads with aws-crt's own S3 client, without the aws program. usage: crt.py URL FOLDER AT_ONCE PART_MIB"""
import pathlib, sys, threading
from awscrt import auth, http, io, s3

url, folder, at_once, part = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) << 20
scheme, host = url.split("://")
trust = io.TlsContextOptions()
trust.verify_peer = False
secure = scheme == "https"
client = s3.S3Client(
    bootstrap=io.ClientBootstrap(group := io.EventLoopGroup(0), io.DefaultHostResolver(group)), region="us-east-1",
    credential_provider=auth.AwsCredentialsProvider.new_static("AKIABENCH", "bench"), part_size=part,
    multipart_upload_threshold=part, throughput_target_gbps=10.0,
    tls_connection_options=io.ClientTlsContext(trust).new_connection_options() if secure else None,
    tls_mode=s3.S3RequestTlsMode.ENABLED if secure else s3.S3RequestTlsMode.DISABLED)
free, failed, waiting = threading.Semaphore(at_once), [], []


def finished(error=None, **_):
    if error:
        failed.append(error)
    free.release()


for path in sorted(p for p in folder.rglob("*") if p.is_file()):
    free.acquire()
    headers = http.HttpHeaders([("Host", host), ("Content-Length", str(path.stat().st_size))])
    request = http.HttpRequest("PUT", f"/bucket/up/{path.relative_to(folder)}", headers)
    waiting.append(client.make_request(
        request=request, type=s3.S3RequestType.PUT_OBJECT, send_filepath=str(path), on_done=finished).finished_future)
for future in waiting:
    future.exception()
if failed:
    raise SystemExit(f"{len(failed)} failed: {failed[0]}")
