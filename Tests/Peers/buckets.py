"""Bucket servers: moto for S3, and an emulator of Google's JSON API."""

import boto3
import requests

from material import digest
from servers import Server, python_tool


class Moto(Server):
    """S3 with versioning and object lock: a name keeps every version, and the default retention requires checksums."""

    title = "moto"
    how = "S3, with versioning and object lock"
    prefix = ""
    url = "s3://media/"
    forgets = True

    def __init__(self, scratch):
        super().__init__(scratch)
        self.environment = {
            "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    def command(self):
        return [python_tool("moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]

    def mistyped(self):
        return ["s3://no-such-bucket-here/"]

    def client(self):
        return boto3.client(
            "s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"], region_name="us-east-1",
            aws_access_key_id="testing", aws_secret_access_key="testing-secret")

    def start(self):
        super().start()
        client = self.client()
        client.create_bucket(Bucket="media", ObjectLockEnabledForBucket=True)
        client.put_object_lock_configuration(
            Bucket="media", ObjectLockConfiguration={
                "ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}})

    def files(self):
        client, found = self.client(), {}
        for page in client.get_paginator("list_objects_v2").paginate(Bucket="media"):
            for entry in page.get("Contents", []):
                found[entry["Key"]] = digest(client.get_object(Bucket="media", Key=entry["Key"])["Body"].read())
        return found

    def wipe(self):
        client = self.client()
        for page in client.get_paginator("list_object_versions").paginate(Bucket="media"):
            for entry in page.get("Versions", []) + page.get("DeleteMarkers", []):
                client.delete_object(
                    Bucket="media", Key=entry["Key"], VersionId=entry["VersionId"], BypassGovernanceRetention=True)

    def replace(self, name, data):
        self.client().put_object(Bucket="media", Key=name, Body=data, ChecksumAlgorithm="SHA256")

    def remove(self, name):
        self.client().delete_object(Bucket="media", Key=name)


class GCSEmulator(Server):
    """Google Cloud Storage, emulated by gcp-storage-emulator."""

    title = "gcp-storage-emulator"
    how = "Google Cloud Storage's JSON API"
    prefix = "gcs+"
    path = "/media/"
    forgets = ignores_conditions = keeps_unfinished = True

    def command(self):
        return [
            python_tool("gcp-storage-emulator"), "start", "--host", "127.0.0.1", "--port", str(self.port), "--in-memory",
            "--default-bucket", "media", "--quiet"]

    def mistyped(self):
        return [f"gcs+http://127.0.0.1:{self.port}/no-such-bucket-here/"]

    @property
    def objects(self):
        return f"http://127.0.0.1:{self.port}/storage/v1/b/media/o"

    def names(self):
        return [item["name"] for item in requests.get(self.objects, timeout=60).json().get("items", [])]

    def object(self, name):
        return f"{self.objects}/{requests.utils.quote(name, safe='')}"

    def files(self):
        return {
            name: digest(requests.get(self.object(name), params={"alt": "media"}, timeout=60).content)
            for name in self.names()}

    def wipe(self):
        for name in self.names():
            requests.delete(self.object(name), timeout=60)

    def replace(self, name, data):
        requests.post(
            f"http://127.0.0.1:{self.port}/upload/storage/v1/b/media/o", params={"uploadType": "media", "name": name},
            data=data, timeout=60).raise_for_status()

    def remove(self, name):
        requests.delete(self.object(name), timeout=60).raise_for_status()
