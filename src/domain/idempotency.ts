export interface Idempotency {
  readonly key: string;
  readonly digest: Buffer;
}
