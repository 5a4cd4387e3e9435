import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';
const secretBytes = 32;

/** `whsec_` and 256 random bits in base64: the form that libraries for Standard Webhooks take. */
export function generateSecret(): string {
  return `${prefix}${randomBytes(secretBytes).toString('base64')}`;
}

/** The `webhook-signature` header: one signature per secret that is live, so that receivers can change over. */
export function signWebhook(
  secrets: readonly string[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}
