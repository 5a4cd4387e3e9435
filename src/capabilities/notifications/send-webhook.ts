import { createHmac, randomBytes } from 'node:crypto';
import { Interrupted, messageOf } from '../../base/errors.ts';
import {
  forbiddenAddress,
  type HttpAnswer,
  type Reach,
  readRetryAfter,
  sendRequest,
} from '../../base/http-client.ts';
import { oneLine } from './brief.ts';

const MAX_NOTIFICATION_ERROR_CHARS = 500;
const MAX_ANSWER_BYTES = 1024;

export interface WebhookRules {
  readonly connectTimeoutMs: number;
  /** Limit for the time from the name look-up to the head of the response. */
  readonly totalTimeoutMs: number;
  readonly allowPrivate: boolean;
}

export interface Webhook {
  readonly url: string;
  /** Id of the event. It is equal for every attempt, so that the receiver can drop duplicates. */
  readonly id: string;
  readonly body: string;
  /** Secrets for the signatures. Empty if the receiver checks no signature. */
  readonly secrets: readonly string[];
}

interface WebhookAnswer {
  /** `null` without a response. */
  readonly status: number | null;
  /** Error on one line. `null` if there was no error. */
  readonly error: string | null;
  /** Pause that the receiver requests. `null` if it requests none. */
  readonly retryAfterMs: number | null;
}

/**
 * Sends a webhook, without following redirects. If `stopping` is aborted, throws `Interrupted`.
 * Throws no other errors.
 */
export async function sendWebhook(
  webhook: Webhook,
  rules: WebhookRules,
  stopping: AbortSignal,
): Promise<WebhookAnswer> {
  const overdue = AbortSignal.timeout(rules.totalTimeoutMs);
  try {
    const answer = await post(webhook, rules, AbortSignal.any([overdue, stopping]));
    return await readAnswer(answer).finally(answer.close);
  } catch (error) {
    if (stopping.aborted) throw new Interrupted('the worker stops');
    const reason = overdue.aborted ? `no answer within ${rules.totalTimeoutMs} ms` : explain(error, rules);
    return { status: null, error: shortLine(reason), retryAfterMs: null };
  }
}

function explain(error: unknown, { allowPrivate }: WebhookRules): string {
  const isForbidden = (error as { code?: unknown }).code === forbiddenAddress;
  if (allowPrivate || !isForbidden) return messageOf(error);
  return `${messageOf(error)}. If the receiver is in a private network, set NOTIFY_ALLOW_PRIVATE=true for the service`;
}

/** Unencrypted calls are allowed only in private networks. */
export function reachOf({ protocol }: URL, allowPrivate: boolean): Reach {
  if (protocol === 'http:') return 'private';
  return allowPrivate ? 'any' : 'public';
}

async function post(
  { url: address, id, body, secrets }: Webhook,
  rules: WebhookRules,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const url = new URL(address);
  if (url.protocol === 'http:' && !rules.allowPrivate)
    throw Object.assign(new Error('http:// is not allowed'), { code: forbiddenAddress });
  return sendRequest(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(secrets.length > 0 && signatureOf({ id, body, secrets })),
    },
    body,
    reach: reachOf(url, rules.allowPrivate),
    connectTimeoutMs: rules.connectTimeoutMs,
    // `signal` ends the whole call.
    answerTimeoutMs: rules.totalTimeoutMs,
    signal,
  });
}

function signatureOf({ id, body, secrets }: Pick<Webhook, 'id' | 'body' | 'secrets'>) {
  const timestamp = Math.floor(Date.now() / 1000);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(secrets, { id, timestamp, body }),
  };
}

async function readAnswer(answer: HttpAnswer): Promise<WebhookAnswer> {
  const { status } = answer;
  if (status >= 200 && status < 300) return { status, error: null, retryAfterMs: null };
  const text = await readHead(answer);
  const reason = status >= 300 && status < 400 ? 'a redirect, which is not followed' : text;
  const error = shortLine(reason === '' ? `HTTP ${status}` : `HTTP ${status}: ${reason}`);
  return { status, error, retryAfterMs: readRetryAfter(answer.headers['retry-after'], Date.now()) };
}

/** If reading the body fails, returns the text read so far. */
async function readHead({ body }: HttpAnswer): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of body) {
      pieces.push(piece.subarray(0, MAX_ANSWER_BYTES - length));
      length += piece.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // The status is sufficient without the whole body.
  }
  return Buffer.concat(pieces).toString('utf8').trim();
}

export function shortLine(text: string): string {
  return oneLine(text).slice(0, MAX_NOTIFICATION_ERROR_CHARS).toWellFormed();
}

const secretPrefix = 'whsec_';
const secretBytes = 32;

/** Format of Standard Webhooks: `whsec_` and 256 random bits in base64. */
export function generateSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString('base64')}`;
}

export function isSecret(text: string): boolean {
  return /^whsec_[A-Za-z0-9+/]{43}=$/.test(text);
}

/** The header `webhook-signature` has one signature for each valid secret. */
export function signWebhook(
  secrets: readonly string[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}
