/** Where files are on S3, and how it is reached. */
export interface S3Location {
  /** STORAGE_URL as given; holds no secret. */
  readonly url: string;
  readonly bucket: string;
  /** Before every key, without slashes at its ends; empty: none. */
  readonly prefix: string;
  /** Null: Amazon's own, of the region. */
  readonly endpoint: string | null;
  /** Null: as the SDK finds it (AWS_REGION, profile). */
  readonly region: string | null;
  /** The bucket stands in the path, not in the host name. */
  readonly pathStyle: boolean;
  /** Whether callers get links that S3 answers. */
  readonly presign: boolean;
  /** Not to be logged. Null: the SDK's own chain (profile, role of the machine or pod). */
  readonly credentials: S3Credentials | null;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}
