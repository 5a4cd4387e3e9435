import { hostname } from 'node:os';
import type { LoadChunk } from '../api/load.ts';
import { render } from '../api/render.ts';
import { LIVE_RECENT_JOBS } from '../domain/limits.ts';
import type { LiveChunk, LiveJob } from '../postgres/stores/live.ts';

/* Topics and their views: what each says of the ledger, and single records as this process takes them. */

export type Topic =
  | { readonly kind: 'jobs' | 'pulse' | 'records' }
  | { readonly kind: 'job'; readonly jobId: string };

const plainKinds = ['jobs', 'pulse', 'records'] as const;
const jobTopic = /^job:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i;

export function readTopic(text: string): Topic | null {
  const plain = plainKinds.find((kind) => kind === text);
  if (plain !== undefined) return { kind: plain };
  const jobId = jobTopic.exec(text)?.[1]?.toLowerCase();
  return jobId === undefined ? null : { kind: 'job', jobId };
}

export function channelName(environmentId: number, topic: Topic): string {
  return `${environmentId} ${topic.kind === 'job' ? topic.jobId : topic.kind}`;
}

/** The ledger's state of one environment. */
export interface EnvironmentState {
  readonly jobs: readonly LiveJob[];
  readonly chunks: readonly LiveChunk[];
  readonly queued: number;
}

/** A view of a topic of an environment: takes the ledger's state in, and tells what is new. */
export interface View {
  /** Everything, as it is known; null: nothing was looked at yet. */
  snapshot(): object | null;
  update(state: EnvironmentState): object | null;
  readonly jobs: readonly string[];
  readonly chunks: 'none' | 'changed' | 'all';
}

export function createView(topic: Topic): View {
  if (topic.kind === 'job') return new JobView(topic.jobId);
  return topic.kind === 'jobs' ? new JobsView() : new PulseView();
}

const isUnfinished = ({ status }: LiveJob): boolean => status === 'queued' || status === 'processing';

/** The newest jobs of an environment and all that have not ended. Sends jobs that are new or have changed. */
class JobsView implements View {
  #known: Map<string, string> | null = null;
  #items: readonly object[] = [];
  jobs: readonly string[] = [];
  readonly chunks = 'none';

  snapshot(): object | null {
    return this.#known === null ? null : { snapshot: true, complete: true, jobs: this.#items };
  }

  update({ jobs }: EnvironmentState): object | null {
    const items = jobs.map(renderLiveJob);
    const before = this.#known;
    const known = new Map(items.map((item) => [item.job_id, JSON.stringify(item)]));
    this.#known = known;
    this.#items = items;
    // Asked for by their ids until they have ended, however many come after them.
    this.jobs = jobs.filter(isUnfinished).map(({ jobId }) => jobId);
    if (before === null) return null;
    const changed = items.filter(({ job_id }) => before.get(job_id) !== known.get(job_id));
    if (changed.length === 0) return null;
    const added = changed.filter(({ job_id }) => !before.has(job_id)).length;
    return { snapshot: false, complete: added < LIVE_RECENT_JOBS, jobs: changed };
  }
}

/** A job with its chunks. Sends the job when it changes, and the chunks that have. */
class JobView implements View {
  readonly jobs: readonly [string];
  #job: LiveJob | null = null;
  #isKnown = false;
  /** All chunks were looked at after it had ended. */
  #isSeenWhole = false;
  readonly #chunks = new Map<number, string>();

  constructor(jobId: string) {
    this.jobs = [jobId];
  }

  get chunks(): 'none' | 'changed' | 'all' {
    if (!this.#isKnown) return 'all';
    if (this.#job === null || this.#isSeenWhole) return 'none';
    return isUnfinished(this.#job) ? 'changed' : 'all';
  }

  snapshot(): object | null {
    if (!this.#isKnown) return null;
    const chunks = [...this.#chunks.values()].map((text) => JSON.parse(text) as object);
    return { snapshot: true, ...this.#rendered(), chunks };
  }

  update(state: EnvironmentState): object | null {
    const asked = this.chunks;
    const isMine = ({ jobId }: { readonly jobId: string }) => jobId === this.jobs[0];
    const job = state.jobs.find(isMine) ?? null;
    const found = job === null ? [] : state.chunks.filter(isMine);
    const chunks = found.map(renderLiveChunk).filter((chunk) => this.#isNew(chunk));
    const isNew = JSON.stringify(job) !== JSON.stringify(this.#job);
    const isFirst = !this.#isKnown;
    this.#isKnown = true;
    this.#job = job;
    const isEnded = job !== null && !isUnfinished(job);
    this.#isSeenWhole = isEnded && (asked === 'all' || (this.#isSeenWhole && !isNew));
    if (isFirst || (!isNew && chunks.length === 0)) return null;
    return { snapshot: false, ...this.#rendered(), chunks };
  }

  #rendered() {
    return { job_id: this.jobs[0], job: this.#job && renderLiveJob(this.#job) };
  }

  #isNew(chunk: { readonly chunk: number }): boolean {
    const text = JSON.stringify(chunk);
    if (this.#chunks.get(chunk.chunk) === text) return false;
    this.#chunks.set(chunk.chunk, text);
    return true;
  }
}

/** The environment's numbers of waiting and running jobs, and those that run. */
class PulseView implements View {
  #now: object | null = null;
  readonly jobs: readonly string[] = [];
  readonly chunks = 'none';

  snapshot(): object | null {
    return this.#now && { snapshot: true, ...this.#now };
  }

  update({ jobs, queued }: EnvironmentState): object | null {
    const running = jobs.filter(({ status }) => status === 'processing');
    const now = { queued, running: running.map(renderLiveJob) };
    const before = JSON.stringify(this.#now);
    this.#now = now;
    return before === 'null' || before === JSON.stringify(now) ? null : { snapshot: false, ...now };
  }
}

/** With the names that `GET /v1/background_jobs/{job_id}` has. */
function renderLiveJob({ environmentId: _, failureCode, failureMessage, ...job }: LiveJob) {
  const { acceptedAt, startedAt, endedAt, ...others } = job;
  return {
    ...render(others),
    start_time: acceptedAt,
    processing_since: startedAt,
    end_time: endedAt,
    failure:
      failureCode === null ? null : { error_code: failureCode, message: failureMessage ?? failureCode },
  };
}

/** Like `GET /v1/background_jobs/{job_id}/chunks` has it. */
export function renderLiveChunk({ jobId: _, ...chunk }: LiveChunk): LoadChunk {
  return chunk;
}

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

export const server = `${hostname()} ${process.pid}`;

interface KeptRecord extends TakenRecord {
  readonly at: number;
}

/**
 * Single records as this process takes them. While nobody watches an environment a record costs it one look at `isWatched`; while
 * somebody does, all are counted, and of those of a quarter of a second some are kept, refused ones before the others.
 */
export class RecordTap {
  readonly #views = new Map<number, RecordsView>();
  readonly #isPersonal: (environmentId: number) => Promise<boolean>;

  /** The records of environments with personal data are shown without their bodies. */
  constructor(isPersonal: (environmentId: number) => Promise<boolean>) {
    this.#isPersonal = isPersonal;
  }

  get isWatched(): boolean {
    return this.#views.size > 0;
  }

  take(environmentId: number, record: TakenRecord): void {
    const view = this.#views.get(environmentId);
    if (view === undefined) return;
    this.#isPersonal(environmentId).then(
      (isPersonal) => view.add(isPersonal ? { ...record, body: hiddenBody } : record),
      // What the rules are cannot be read now: better to show too little.
      () => view.add({ ...record, body: hiddenBody }),
    );
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

const hiddenBody = Buffer.from('(hidden: the environment has personal data)');

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
