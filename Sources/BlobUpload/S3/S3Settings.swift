import BlobHTTP

/// Credentials and location for S3, from the environment and Amazon's configuration files.
public struct S3Settings: Sendable {
  /// The access key.
  public var credentials: S3Credentials
  /// nil: not set.
  public var region: String?
  /// nil: Amazon's own.
  public var endpoint: String?
  /// Whether the bucket's name is part of the host name; nil: not set.
  public var isVirtual: Bool?
  /// The name of the variable that has `endpoint`; nil: it is not from the environment.
  package var endpointVariable: String?
  /// The endpoint that the profile has, whatever the environment says; nil: none.
  package var profileEndpoint: String?

  /// Why there are no credentials. Contains no secret.
  public struct Missing: Error, Sendable, CustomStringConvertible {
    public var description: String
  }

  /// - `profile`: a name; nil: `AWS_PROFILE`, else `default`. A given profile takes precedence over keys in the
  ///   environment.
  /// - `environment`: returns the value of a variable; nil if it is not set.
  /// - `read`: returns the text of a file; nil if it does not exist.
  public static func load(
    profile named: String? = nil, environment: (String) -> String?, read: (String) throws -> String?
  ) throws -> S3Settings {
    func variable(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    let home = variable("HOME") ?? ""
    let profileName = named ?? variable("AWS_PROFILE") ?? variable("AWS_DEFAULT_PROFILE") ?? "default"
    let profile = S3Profile(
      profileName, credentials: try read(variable("AWS_SHARED_CREDENTIALS_FILE") ?? home + "/.aws/credentials"),
      config: try read(variable("AWS_CONFIG_FILE") ?? home + "/.aws/config"))
    if let named, !profile.isThere { throw Missing(description: "no profile is called '\(named)' in the AWS files") }

    var credentials: S3Credentials?
    if named == nil, let key = variable("AWS_ACCESS_KEY_ID") {
      guard let secret = variable("AWS_SECRET_ACCESS_KEY") else {
        throw Missing(description: "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not")
      }
      credentials = S3Credentials(accessKey: key, secretKey: secret, sessionToken: variable("AWS_SESSION_TOKEN"))
    }
    let ignoresEndpoints = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")?.lowercased() == "true"
    let profileEndpoint = profile["s3.endpoint_url"] ?? profile["endpoint_url"]
    let endpointVariable =
      ignoresEndpoints ? nil : ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].first { variable($0) != nil }
    let style = profile["s3.addressing_style"]
    return S3Settings(
      credentials: try credentials ?? keys(of: profile, profileName),
      region: variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION") ?? profile["region"],
      endpoint: ignoresEndpoints ? nil : endpointVariable.flatMap(variable) ?? profileEndpoint,
      isVirtual: style == "virtual" ? true : style == "path" ? false : nil, endpointVariable: endpointVariable,
      profileEndpoint: profileEndpoint)
  }

  private static func keys(of profile: S3Profile, _ name: String) throws -> S3Credentials {
    if let key = profile["aws_access_key_id"] {
      guard let secret = profile["aws_secret_access_key"] else {
        throw Missing(description: "the profile '\(name)' has an aws_access_key_id and no aws_secret_access_key")
      }
      return S3Credentials(accessKey: key, secretKey: secret, sessionToken: profile["aws_session_token"])
    }
    for how in ["sso_session", "sso_start_url", "credential_process", "role_arn", "web_identity_token_file"]
    where profile[how] != nil {
      throw Missing(
        description: "the profile '\(name)' gets its keys by \(how), which is not known here: "
          + "run 'aws configure export-credentials --format env', and set what it says")
    }
    throw Missing(
      description: "no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them into "
        + "~/.aws/credentials, or name a profile that is there")
  }
}
