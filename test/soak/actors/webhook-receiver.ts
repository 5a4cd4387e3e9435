import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pause } from '../patience.ts';
import type { Random } from '../random.ts';

/** What was told, as far as it is compared. */
export interface Told {
  readonly type: string;
  readonly data: {
    readonly status: string;
    readonly job_id?: string;
    readonly schedule?: string;
    readonly due_at?: string;
    readonly counts?: { readonly read: number } | null;
  };
}

interface Received {
  readonly text: string;
  readonly told: Told;
  /** Answered 200. */
  isTaken: boolean;
}

const toleranceSeconds = 5 * 60;
const longestHangMs = 2_500;

/** Takes webhooks, on this machine; not all of them at the first time, nor at once, as long as it is moody. */
export class WebhookReceiver {
  readonly problems: string[] = [];
  /** By event id. */
  readonly received = new Map<string, Received>();
  readonly figures = { requests: 0, refused: 0, hung: 0, dropped: 0 };
  isMoody = true;
  /** As `sluice notifications add` prints it. */
  secret = '';
  readonly #random: Random;
  readonly #server: Server;

  constructor(random: Random) {
    this.#random = random;
    this.#server = createServer((request, response) => {
      void buffer(request)
        .then(async (bytes) => {
          const status = await this.#take(request.headers, bytes);
          if (status === null) request.socket.destroy();
          else response.writeHead(status).end();
        })
        // Whoever sent it was killed.
        .catch(() => undefined);
    });
  }

  /** Resolves with its address. */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1').unref();
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** The status to be answered; null: none, as if we had died after it was taken. */
  async #take(headers: IncomingHttpHeaders, bytes: Buffer): Promise<number | null> {
    this.figures.requests++;
    if (!isSigned(this.secret, headers, bytes)) {
      this.problems.push(`a webhook is not signed as it must be: ${bytes.toString('utf8').slice(0, 300)}`);
      return 401;
    }
    const received = this.#note(String(headers['webhook-id']), bytes.toString('utf8'));
    const mood = this.isMoody ? this.#random.next() : 1;
    if (mood < 0.1) {
      this.figures.refused++;
      return 500;
    }
    if (mood < 0.15) {
      this.figures.dropped++;
      return null;
    }
    if (mood < 0.2) {
      this.figures.hung++;
      await pause(this.#random.integer(200, longestHangMs));
    }
    received.isTaken = true;
    return 200;
  }

  /** The same id is the same event, to the byte. */
  #note(id: string, text: string): Received {
    const before = this.received.get(id);
    if (before !== undefined) {
      if (before.text !== text) this.problems.push(`event ${id} came again with another body`);
      return before;
    }
    const told = JSON.parse(text) as Told & { readonly id: string };
    if (told.id !== id) this.problems.push(`the body of event ${id} says that it is ${told.id}`);
    const received = { text, told, isTaken: false };
    this.received.set(id, received);
    return received;
  }
}

/** By the standard's words, not by our code. */
function isSigned(secret: string, headers: IncomingHttpHeaders, bytes: Buffer): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= toleranceSeconds)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const wanted = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest();
  return String(signatures)
    .split(' ')
    .map((signature) => Buffer.from(signature.replace(/^v1,/, ''), 'base64'))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
}
