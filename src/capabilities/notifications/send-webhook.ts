import { createHmac, randomBytes } from 'node:crypto';
import { Interrupted, messageOf } from '../../base/errors.ts';
import { type HttpAnswer, type Reach, readRetryAfter, sendRequest } from '../../base/http-client.ts';
import { oneLine } from './mail.ts';

const MAX_NOTIFICATION_ERROR_CHARS = 500;
const MAX_ANSWER_BYTES = 1024;

/** Limits of webhooks: allowed addresses and time. */
export interface WebhookRules {
  readonly connectTimeoutMs: number;
  /** From the look-up of the name to the head of the answer. */
  readonly totalTimeoutMs: number;
  readonly allowPrivate: boolean;
}

export interface Webhook {
  readonly url: string;
  /** The event's id, the same at every attempt, so that the receiver can drop repeats. */
  readonly id: string;
  readonly body: string;
  readonly secrets: readonly string[];
}

interface WebhookAnswer {
  /** `null` without an answer. */
  readonly status: number | null;
  /** One line, or `null`. */
  readonly error: string | null;
  /** The pause that the receiver asks for. */
  readonly retryAfterMs: number | null;
}

/**
 * Posts an event to its receiver. Follows no redirect, and reads only the part of the answer that
 * is kept.
 * @throws Interrupted if `stopping` is aborted, nothing else.
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
    const reason = overdue.aborted ? `no answer within ${rules.totalTimeoutMs} ms` : messageOf(error);
    return { status: null, error: shortLine(reason), retryAfterMs: null };
  }
}

/** Unencrypted calls stay in private networks. */
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
  if (url.protocol === 'http:' && !rules.allowPrivate) throw new Error('http:// is not allowed (any more)');
  const timestamp = Math.floor(Date.now() / 1000);
  return sendRequest(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signWebhook(secrets, { id, timestamp, body }),
    },
    body,
    reach: reachOf(url, rules.allowPrivate),
    connectTimeoutMs: rules.connectTimeoutMs,
    // `signal` bounds the whole call.
    answerTimeoutMs: rules.totalTimeoutMs,
    signal,
  });
}

async function readAnswer(answer: HttpAnswer): Promise<WebhookAnswer> {
  const { status } = answer;
  // Any 2xx is enough.
  if (status >= 200 && status < 300) return { status, error: null, retryAfterMs: null };
  const said = await readHead(answer);
  const reason = status >= 300 && status < 400 ? 'a redirect, which is not followed' : said;
  const error = shortLine(reason === '' ? `HTTP ${status}` : `HTTP ${status}: ${reason}`);
  return { status, error, retryAfterMs: readRetryAfter(answer.headers['retry-after'], Date.now()) };
}

/** Returns the start of the body, as far as it came. */
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
    // The status is known, so the rest does not matter.
  }
  return Buffer.concat(pieces).toString('utf8').trim();
}

export function shortLine(text: string): string {
  return oneLine(text).slice(0, MAX_NOTIFICATION_ERROR_CHARS).toWellFormed();
}

const secretPrefix = 'whsec_';
const secretBytes = 32;

/** `whsec_` and 256 random bits in base64, as libraries for Standard Webhooks expect. */
export function generateSecret(): string {
  return `${secretPrefix}${randomBytes(secretBytes).toString('base64')}`;
}

/** Header `webhook-signature`: one signature per live secret, so that receivers can rotate. */
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
