import type { Journal } from './journal.ts';
import type { Random } from './random.ts';
import type { Tenant } from './site/site.ts';
import { pause } from './waiting.ts';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: string | Uint8Array<ArrayBuffer> | object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Statuses besides 503 that may be answered; anything else is a trouble. */
  readonly expected: readonly number[];
}

const deadlineMs = 30_000;
/** The service is away for the moment, or busy; the same call may work later. */
const mayPass = 503;

/** A caller: it knows the servers, and a key of its environment. */
export class Client {
  readonly tenant: Tenant;
  /** Requests without an answer, or answered 503. */
  unanswered = 0;
  readonly #urls: readonly string[];
  readonly #random: Random;
  readonly #journal: Journal;
  /** When even what must be repeated until it works is given up. */
  readonly #givingUp: AbortSignal;

  constructor(
    tenant: Tenant,
    site: { readonly urls: readonly string[] },
    options: { readonly random: Random; readonly journal: Journal; readonly givingUp: AbortSignal },
  ) {
    this.tenant = tenant;
    this.#urls = site.urls;
    this.#random = options.random;
    this.#journal = options.journal;
    this.#givingUp = options.givingUp;
  }

  /** Asks once. Null: no answer, or 503; whether it took effect is not known. */
  async once(call: Call): Promise<Answer | null> {
    const answer = await this.#send(call).catch(() => null);
    if (answer === null || answer.status === mayPass) {
      this.unanswered++;
      return null;
    }
    if (!call.expected.includes(answer.status)) {
      this.#journal.trouble(
        `${call.method} ${call.path} was answered ${answer.status}: ${answer.text.slice(0, 500)}`,
      );
    }
    return answer;
  }

  /** Asks until it is answered: for calls that may be repeated. Null once the soak gives up. */
  async insist(call: Call): Promise<Answer | null> {
    for (let wait = 50; ; wait = Math.min(wait * 2, 1_000)) {
      const answer = await this.once(call);
      if (answer !== null) return answer;
      if (this.#givingUp.aborted) {
        this.#journal.trouble(`${call.method} ${call.path} was not answered in the end`);
        return null;
      }
      await pause(wait);
    }
  }

  async #send({ method, path, body, headers = {} }: Call): Promise<Answer> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(new URL(path, this.#random.pick(this.#urls)), {
      method,
      headers: {
        authorization: `Token ${this.tenant.key}`,
        ...(body !== undefined && !isRaw && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(deadlineMs),
    });
    return { status: response.status, text: await response.text() };
  }
}
