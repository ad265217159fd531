import BlobHTTP
import BlobUpload
import Testing

@Suite struct S3SettingsTests {
  private static let credentials = """
    # mine
    [default]
    aws_access_key_id = DEFAULTKEY
    aws_secret_access_key=default/secret=
    ; another
    [work]
    aws_access_key_id = WORKKEY
    aws_secret_access_key = worksecret
    aws_session_token = worktoken
    """
  private static let config = """
    [default]
    region = eu-west-1
    [profile work]
    region = eu-central-1
    endpoint_url = https://objects.example:9000
    s3 =
      addressing_style = virtual
      max_concurrent_requests = 4
    output = json
    [profile sso]
    sso_session = corporate
    [profile services]
    services = mine
    aws_access_key_id = K
    aws_secret_access_key = S
    [services mine]
    s3 =
      endpoint_url = http://127.0.0.1:9000
    """

  private func load(
    _ profile: String? = nil, _ environment: [String: String] = [:], files: Bool = true
  ) throws -> S3Settings {
    try S3Settings.load(
      profile: profile, environment: { (["HOME": "/home/me"].merging(environment) { $1 })[$0] },
      read: { path in
        if !files { return nil }
        switch path {
        case "/home/me/.aws/credentials": return Self.credentials
        case "/home/me/.aws/config": return Self.config
        case "/elsewhere": return "[default]\naws_access_key_id=E\naws_secret_access_key=F\n"
        default: return nil
        }
      })
  }

  @Test func theDefaultProfileIsFound() throws {
    let settings = try load()
    #expect(settings.credentials == S3Credentials(accessKey: "DEFAULTKEY", secretKey: "default/secret="))
    #expect(settings.region == "eu-west-1" && settings.endpoint == nil && settings.isVirtual == nil)
  }

  @Test(arguments: [true, false]) func aProfileIsFoundByName(_ isGiven: Bool) throws {
    let settings = try isGiven ? load("work") : load(nil, ["AWS_PROFILE": "work"])
    #expect(settings.credentials.accessKey == "WORKKEY" && settings.credentials.sessionToken == "worktoken")
    #expect(settings.region == "eu-central-1" && settings.endpoint == "https://objects.example:9000")
    #expect(settings.isVirtual == true)
  }

  @Test func settingsSayWhereTheirEndpointComesFrom() throws {
    let work = try load("work")
    #expect(work.endpointVariable == nil && work.profileEndpoint == "https://objects.example:9000")
    let named = try load("work", ["AWS_ENDPOINT_URL": "http://one"])
    #expect(named.endpoint == "http://one" && named.endpointVariable == "AWS_ENDPOINT_URL")
    #expect(named.profileEndpoint == "https://objects.example:9000")
    let ignored = try load("work", ["AWS_ENDPOINT_URL": "x", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"])
    #expect(ignored.endpoint == nil && ignored.endpointVariable == nil)
  }

  @Test func theEnvironmentGoesBeforeTheFiles() throws {
    let settings = try load(
      nil,
      [
        "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_SESSION_TOKEN": "C", "AWS_REGION": "us-west-2",
        "AWS_ENDPOINT_URL": "http://one", "AWS_ENDPOINT_URL_S3": "http://two",
      ])
    #expect(settings.credentials == S3Credentials(accessKey: "A", secretKey: "B", sessionToken: "C"))
    #expect(settings.region == "us-west-2" && settings.endpoint == "http://two")
  }

  @Test func aProfileThatIsAskedForGoesBeforeTheEnvironment() throws {
    let settings = try load("work", ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"])
    #expect(settings.credentials.accessKey == "WORKKEY")
  }

  @Test func filesMayBeElsewhereAndServicesHaveSections() throws {
    #expect(try load(nil, ["AWS_SHARED_CREDENTIALS_FILE": "/elsewhere"]).credentials.accessKey == "E")
    #expect(try load("services").endpoint == "http://127.0.0.1:9000")
  }

  @Test(arguments: [
    (nil, false, "AWS_ACCESS_KEY_ID"), ("sso", true, "sso_session"), ("nobody", true, "no profile is called 'nobody'"),
  ])
  func theErrorNamesTheMissingCredentials(_ profile: String?, _ files: Bool, _ wanted: String) {
    do {
      _ = try load(profile, files: files)
      Issue.record("there were credentials")
    } catch {
      #expect("\(error)".contains(wanted), "\(error)")
      #expect(!"\(error)".contains("secret/"))
    }
  }

  @Test func addressesAreWhereAmazonAndOthersHaveThem() {
    func url(_ bucket: String, _ endpoint: String? = nil, _ region: String = "us-east-1", virtual: Bool? = nil)
      -> String?
    {
      S3Address(bucket: bucket, endpoint: endpoint, region: region, isVirtual: virtual).url?.text
    }
    #expect(url("media") == "https://media.s3.us-east-1.amazonaws.com/")
    #expect(url("media", nil, "cn-north-1") == "https://media.s3.cn-north-1.amazonaws.com.cn/")
    // A certificate for *.s3 does not cover a name that contains a dot.
    #expect(url("my.media", nil, "eu-west-1") == "https://s3.eu-west-1.amazonaws.com/my.media/")
    #expect(url("Old_One") == "https://s3.us-east-1.amazonaws.com/Old_One/")
    #expect(url("media", nil, virtual: false) == "https://s3.us-east-1.amazonaws.com/media/")
    #expect(url("media", "http://127.0.0.1:9000") == "http://127.0.0.1:9000/media/")
    #expect(url("media", "https://host.example/storage/v1/s3") == "https://host.example/storage/v1/s3/media/")
    #expect(url("media", "http://host.example:9000", virtual: true) == "http://media.host.example:9000/")
    for name in ["", "a", "a/b", "a b", "..", "ä", "a..b"] { #expect(url(name) == nil, "\(name)") }
  }
}
