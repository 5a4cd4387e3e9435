/** Idempotency key of a request, and digest of its content. */
export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
