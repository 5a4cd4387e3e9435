import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { oneLine } from '../delivery/one-line.ts';
import { Interrupted } from '../domain/errors.ts';
import { MAX_ANSWER_BYTES, MAX_NOTIFICATION_ERROR_CHARS } from '../domain/limits.ts';
import { guardedLookup, requirePublicHost } from '../net/guarded-lookup.ts';
import type { DeliveryPolicy } from './delivery-policy.ts';
import { readRetryAfter } from './retry-after.ts';
import { signWebhook } from './webhook-secret.ts';

export interface Webhook {
  readonly url: string;
  /** The event's: the same for every try, so that the receiver can tell repetitions. */
  readonly id: string;
  readonly body: string;
  readonly secrets: readonly string[];
}

/** What came of one try. */
export interface WebhookAnswer {
  /** Null: there was no answer. */
  readonly status: number | null;
  /** What went wrong, in one line; null: nothing. */
  readonly error: string | null;
  /** What the receiver asks to wait. */
  readonly retryAfterMs: number | null;
}

/**
 * Posts an event to its receiver. Redirects are not followed, and of the answer no more is read than is kept. Never
 * throws, unless `stopping` is aborted: then `Interrupted`.
 */
export async function sendWebhook(
  webhook: Webhook,
  policy: DeliveryPolicy,
  stopping: AbortSignal,
): Promise<WebhookAnswer> {
  const overdue = AbortSignal.timeout(policy.totalTimeoutMs);
  try {
    const answer = await post(webhook, policy, AbortSignal.any([overdue, stopping]));
    return await judge(answer);
  } catch (error) {
    if (stopping.aborted) throw new Interrupted('the worker stops');
    const reason = overdue.aborted ? `no answer within ${policy.totalTimeoutMs} ms` : messageOf(error);
    return { status: null, error: keep(reason), retryAfterMs: null };
  }
}

async function post(
  { url: address, id, body, secrets }: Webhook,
  policy: DeliveryPolicy,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const url = new URL(address);
  if (url.protocol === 'http:' && !policy.allowHttp) throw new Error('http:// is not allowed (any more)');
  if (!policy.allowPrivate) requirePublicHost(url.hostname);
  const timestamp = Math.floor(Date.now() / 1000);
  const request = (url.protocol === 'http:' ? requestHttp : requestHttps)(url, {
    method: 'POST',
    // A connection of its own: a shared one would have been opened under other rules.
    agent: false,
    signal,
    ...(policy.allowPrivate ? {} : { lookup: guardedLookup }),
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'sluice',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signWebhook(secrets, { id, timestamp, body }),
    },
  });
  const patience = setTimeout(
    () => request.destroy(new Error(`no connection within ${policy.connectTimeoutMs} ms`)),
    policy.connectTimeoutMs,
  );
  request.once('socket', (socket) => {
    const connected = url.protocol === 'http:' ? 'connect' : 'secureConnect';
    socket.once(connected, () => clearTimeout(patience));
  });
  // An answer that is given up may still end in an error, after which nobody asks.
  request.on('error', () => undefined);
  request.end(body);
  try {
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    answer.on('error', () => undefined);
    return answer;
  } finally {
    clearTimeout(patience);
  }
}

async function judge(answer: IncomingMessage): Promise<WebhookAnswer> {
  const status = answer.statusCode ?? 0;
  if (status >= 200 && status < 300) {
    // Whatever it says besides, it has it.
    answer.destroy();
    return { status, error: null, retryAfterMs: null };
  }
  const said = await readHead(answer);
  const verdict = status >= 300 && status < 400 ? 'a redirect, which is not followed' : said;
  const error = keep(verdict === '' ? `HTTP ${status}` : `HTTP ${status}: ${verdict}`);
  return { status, error, retryAfterMs: readRetryAfter(answer.headers['retry-after'], Date.now()) };
}

/** The beginning of the answer, as far as it came. */
async function readHead(answer: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      pieces.push(piece.subarray(0, MAX_ANSWER_BYTES - length));
      length += piece.length;
      if (length >= MAX_ANSWER_BYTES) break;
    }
  } catch {
    // What it said until then will do: the status is known.
  }
  answer.destroy();
  return Buffer.concat(pieces).toString('utf8').trim();
}

/** Of the error only what it says. An AggregateError (every address refused) is told by its first. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

function keep(text: string): string {
  return oneLine(text).slice(0, MAX_NOTIFICATION_ERROR_CHARS).toWellFormed();
}
