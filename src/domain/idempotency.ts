/** Key and digest of a request that is safe to repeat. */
export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
