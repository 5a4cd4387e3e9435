/** The key of a request that may come twice, and the digest of what it asked. */
export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
