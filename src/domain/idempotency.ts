/** Key and digest of a request that may be repeated. */
export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
