import { hostname } from 'node:os';
import type { View } from './views.ts';

/** Records that are shown of a quarter of a second, half of them refused ones. */
const maxLiveRecordsAtOnce = 50;
/** Records that a view begins with. */
const maxLiveRecords = 50;
const maxLiveRecordBytes = 1024;

export type RecordRouteName = 'identify' | 'company' | 'track' | 'batch';

export interface TakenRecord {
  readonly route: RecordRouteName;
  readonly requestId: string;
  readonly keyId: string;
  /** From the head of the request to the commit, or to the refusal. */
  readonly ms: number;
  /** The body as sent, or the item of a batch. */
  readonly body: Buffer;
  /** Why it was not taken; null: it is committed. */
  readonly refusal: { readonly code: string; readonly message: string } | null;
}

const server = `${hostname()} ${process.pid}`;

interface KeptRecord extends TakenRecord {
  readonly at: number;
}

/**
 * Single records as this process takes them. While nobody watches an environment a record costs it one look at `isWatched`; while
 * somebody does, all are counted, and of those of a quarter of a second some are kept, refused ones before the others.
 */
export class RecordTap {
  readonly #views = new Map<number, RecordsView>();

  get isWatched(): boolean {
    return this.#views.size > 0;
  }

  take(environmentId: number, record: TakenRecord): void {
    this.#views.get(environmentId)?.add(record);
  }

  open(environmentId: number): RecordsView {
    const view = new RecordsView();
    this.#views.set(environmentId, view);
    return view;
  }

  close(environmentId: number): void {
    this.#views.delete(environmentId);
  }
}

export class RecordsView implements View {
  readonly jobs: readonly string[] = [];
  readonly chunks = 'none';
  #arrived = 0;
  #refused = 0;
  #shown = 0;
  #accepted: KeptRecord[] = [];
  #refusedOnes: KeptRecord[] = [];
  #isNew = false;
  #latest: object[] = [];

  add(record: TakenRecord): void {
    this.#arrived++;
    this.#isNew = true;
    if (record.refusal !== null) this.#refused++;
    const kept = record.refusal === null ? this.#accepted : this.#refusedOnes;
    if (kept.length < maxLiveRecordsAtOnce / 2) kept.push({ ...record, at: Date.now() });
  }

  snapshot(): object {
    return { snapshot: true, ...this.#counts(), records: this.#latest };
  }

  /** The ledger says nothing of single records. */
  update(): null {
    return null;
  }

  takeNew(): object | null {
    if (!this.#isNew) return null;
    const records = [...this.#refusedOnes, ...this.#accepted].sort((a, b) => a.at - b.at).map(renderRecord);
    this.#isNew = false;
    this.#accepted = [];
    this.#refusedOnes = [];
    this.#shown += records.length;
    this.#latest = [...this.#latest, ...records].slice(-maxLiveRecords);
    return { snapshot: false, ...this.#counts(), records };
  }

  #counts() {
    return { server, arrived: this.#arrived, refused: this.#refused, shown: this.#shown };
  }
}

function renderRecord({ at, route, requestId, keyId, ms, body, refusal }: KeptRecord) {
  const isCut = body.length > maxLiveRecordBytes;
  const text = body.subarray(0, maxLiveRecordBytes).toString('utf8');
  return {
    at: new Date(at).toISOString(),
    route,
    request_id: requestId,
    key_id: keyId,
    ms: Math.round(ms * 10) / 10,
    accepted: refusal === null,
    error_code: refusal?.code ?? null,
    message: refusal?.message ?? null,
    body: isCut ? `${text}…` : text,
  };
}
