"""Commands of the rival programs that are installed, with the best settings we know."""
import shutil, subprocess, sys
from harness import FULLBORE, HERE, WORK


def curl_config(data, url):
    """Writes a file that makes curl upload a whole data set over reused connections."""
    config = WORK / "tmp" / f"curl-{data.name}.cfg"
    config.write_text("".join(
        f'url="{url}/up/{path.relative_to(data.folder)}"\nupload-file="{path}"\noutput=/dev/null\n' for path in data.paths()))
    return config


def curl_parallel(data, url, at_once):
    return ["curl", "-sSf", "--no-progress-meter", "-H", "Expect:", "--parallel", "--parallel-max", at_once, "-K", curl_config(data, url)]


def rclone(data, url):
    return ["rclone", "copy", data.folder, ":webdav:up", "--webdav-url", url, "--webdav-vendor", "other",
            "--transfers", 8, "--no-check-dest", "--retries", 1]


def rival_pythons():
    """Folders with programs of Python packages: beside this interpreter first, then those of PATH."""
    return [sys.executable, *(p for p in (shutil.which("python3"), HERE.parent / ".venv" / "bin" / "python") if p)]


def can_import(python, module):
    try:
        return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def s3_clients(data, url, certificate=None):
    """Fullbore as users run it, and the installed rivals with the best settings we know."""
    (WORK / "tmp" / "aws.cfg").write_text(
        "[default]\nregion=us-east-1\nrequest_checksum_calculation=when_required\ns3 =\n  addressing_style = path\n"
        "  multipart_chunksize = 16MB\n  multipart_threshold = 16MB\n  payload_signing_enabled = false\n")
    trust, insecure = [], []
    if certificate:
        trust, insecure = ["--cacert", certificate], ["--no-check-certificate"]
    clients = {"fullbore": [FULLBORE, "push", "--quiet", *trust, "--endpoint", url, f"{data.folder}/", "s3://bucket/up/"]}
    if shutil.which("rclone"):
        clients["rclone x8"] = [
            "rclone", "copy", data.folder, ":s3:bucket/up", "--s3-provider", "Other", "--s3-endpoint", url, "--s3-env-auth",
            "--s3-force-path-style", "--s3-no-check-bucket", "--s3-no-head", "--s3-disable-checksum", "--ignore-checksum",
            "--s3-use-multipart-etag=false", "--transfers", 8, "--no-check-dest", "--s3-chunk-size", "16Mi",
            "--s3-upload-concurrency", 4, "--retries", 1, *insecure]
    if shutil.which("s5cmd"):
        clients["s5cmd"] = [
            "s5cmd", "--endpoint-url", url, *(["--no-verify-ssl"] if certificate else []), "--log", "error", "--numworkers",
            64, "cp", f"{data.folder}/", "s3://bucket/up/"]
    python = next((p for p in rival_pythons() if can_import(p, "awscrt")), None)
    if python:
        clients["aws-crt"] = [python, HERE / "crt.py", url, data.folder, 32 if data.files > 1 else 16, 16]
    if shutil.which("aws"):
        clients["aws"] = [
            "aws", "s3", "cp", "--only-show-errors", "--endpoint-url", url,
            *(["--ca-bundle", certificate] if certificate else []), "--recursive", f"{data.folder}/", "s3://bucket/up/"]
    return clients
