import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { waitFor } from '../wait-for.ts';

/**
 * `event`, `keyed` and `marked` are events. An `event` has an event id, a `keyed` event has an
 * Idempotency-Key, and a `marked` event has neither. `keyed` and `marked` events are found by their
 * metadata. A `batch` contains an event with an id, and a user that must not be stored without the
 * event.
 */
export const kinds = ['event', 'keyed', 'marked', 'user', 'company', 'batch'] as const;
export type Kind = (typeof kinds)[number];

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Pause of a connection after a refusal. Real clients also pause. */
const restMs = 50;

const requests: Readonly<Record<Kind, (id: string) => { path: string; body: object }>> = {
  event: (id) => ({ path: '/v1/track', body: { ...event, event_id: id, metadata: { id } } }),
  keyed: (id) => ({ path: '/v1/track', body: { ...event, metadata: { id } } }),
  marked: (id) => ({ path: '/v1/track', body: { ...event, metadata: { id } } }),
  user: (id) => ({ path: '/v1/identify', body: { user_id: id, metadata: { id } } }),
  company: (id) => ({ path: '/v1/companies/identify', body: { company_id: id, metadata: { id } } }),
  batch: (id) => ({
    path: '/v1/batch',
    body: {
      batch: [
        { type: 'track', ...event, event_id: id, metadata: { id } },
        { type: 'identify', user_id: id, metadata: { batch: id } },
      ],
    },
  }),
};
const event = { user_id: 'usr_1', event_name: 'Thing Done' };

/**
 * Sends each record once, over a fixed number of keep-alive connections, and stores each record's
 * status. autocannon only counts responses, and forgets records without a response.
 */
export class RecordSender {
  /** Status by record id. `null` if there was no response. */
  readonly answers = new Map<string, number | null>();
  accepted = 0;
  /** The time at which the newest of the accepted records was sent. */
  #acceptedSentAt = 0;
  #sent = 0;
  #isStopped = false;
  readonly #url: string;
  readonly #key: string;
  readonly #agent: Agent;
  readonly #loops: Promise<void>[];

  constructor(url: string, key: string, connections: number) {
    this.#url = url;
    this.#key = key;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#loops = Array.from({ length: connections }, () => this.#run());
  }

  /**
   * Waits until a record sent after this call is accepted. Returns the milliseconds of the wait.
   */
  async untilServed(timeoutMs: number): Promise<number> {
    const since = performance.now();
    await waitFor('a record to be accepted again', () => this.#acceptedSentAt > since, {
      timeoutMs,
      everyMs: 5,
    });
    return performance.now() - since;
  }

  async untilAccepted(more: number): Promise<void> {
    const wanted = this.accepted + more;
    await waitFor(`${more} more records to be accepted`, () => this.accepted >= wanted);
  }

  /** Resolves when each sent record has its response or has failed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
  }

  close(): void {
    this.#agent.destroy();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const number = this.#sent++;
      const id = `${kinds[number % kinds.length]}-${number}`;
      const sentAt = performance.now();
      const status = await this.#send(id);
      this.answers.set(id, status);
      if (status === 202) {
        this.accepted++;
        this.#acceptedSentAt = Math.max(this.#acceptedSentAt, sentAt);
      } else await delay(restMs);
    }
  }

  #send(id: string): Promise<number | null> {
    return postRecord(this.#url, this.#key, id, this.#agent).then(
      // A batch gets status 200 and an outcome for each item. All items sent here are valid, so 200
      // counts as 202.
      ({ status }) => (status === 200 ? 202 : status),
      () => null,
    );
  }
}

export function kindOf(id: string): Kind {
  return id.split('-', 1)[0] as Kind;
}

/** Sends the record with this id. Rejects if the connection is lost. */
function postRecord(url: string, key: string, id: string, agent?: Agent): Promise<Answer> {
  const { path, body } = requests[kindOf(id)](id);
  const headers = {
    authorization: `Token ${key}`,
    ...(kindOf(id) === 'keyed' && { 'idempotency-key': id }),
  };
  return post(new URL(path, url), headers, body, agent);
}

/** Posts an object as JSON. Rejects if the connection is lost. */
export function post(
  url: URL,
  headers: Readonly<Record<string, string>>,
  record: object,
  agent?: Agent,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify(record);
    const length = Buffer.byteLength(body);
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': length },
      ...(agent && { agent }),
    };
    const sending = request(url, options, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
    });
    sending.on('error', reject);
    sending.end(body);
  });
}
