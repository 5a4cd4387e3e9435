/*
 * Live views: what a browser, or a program, watches instead of asking again and again. A stream is about topics; a topic of an
 * environment is a channel, which knows what it said last and says what has changed since. Begin with `Live.open`; `views.ts` has
 * what each topic says, `record-tap.ts` the records as they arrive, `src/postgres/stores/live.ts` the one look at the ledger.
 *
 * Promises: one statement a second however many watch, and none while nobody does; who comes back soon gets what it missed, who
 * comes back late gets everything anew; who does not read is told how much was left out; a stream ends with its key.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type pg from 'pg';
import type { Logger } from 'pino';
import { staticKeyId } from '../access/verify-key.ts';
import { inputError } from '../domain/errors.ts';
import { type LiveAnswer, readLive } from '../postgres/stores/live.ts';
import { Channel, Message, type Sink, Viewer } from './channel.ts';
import { RecordsView, type RecordTap } from './record-tap.ts';
import { channelName, createView, type Topic } from './views.ts';

const liveTickMs = 1_000;
const liveHeartbeatMs = 15_000;
const maxLiveStreamsPerEnvironment = 500;
const maxLiveStreams = 1_000;
/** How long the past events of a topic are kept after its last stream has left. */
const liveLingerMs = 30_000;
const liveRecordsTickMs = 250;

const serverName = `${hostname()} ${process.pid}`;

export interface LiveOptions {
  readonly pool: pg.Pool;
  readonly log: Logger;
  readonly records: RecordTap;
  readonly tickMs?: number;
}

export interface StreamRequest {
  readonly environmentId: number;
  readonly keyId: string;
  readonly topics: readonly Topic[];
  /** `Last-Event-ID`; null: it comes for the first time. */
  readonly lastEventId: string | null;
}

export type EndReason = 'key' | 'stopping';

export class Live {
  readonly #options: LiveOptions;
  readonly #tickMs: number;
  /** The process, since event ids of another mean nothing here. */
  readonly #epoch = randomBytes(6).toString('hex');
  readonly #channels = new Map<string, Channel>();
  readonly #viewers = new Map<Viewer, readonly Channel[]>();
  #sequence = 0;
  #timer: NodeJS.Timeout | undefined;
  #recordsTimer: NodeJS.Timeout | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #staleSince: string | null = null;
  #isStopping = false;

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#tickMs = options.tickMs ?? liveTickMs;
  }

  get size(): number {
    return this.#viewers.size;
  }

  requireRoom(environmentId: number): void {
    const own = [...this.#viewers.keys()].filter((viewer) => viewer.environmentId === environmentId).length;
    if (own < maxLiveStreamsPerEnvironment && this.#viewers.size < maxLiveStreams) return;
    throw inputError(
      'rate_limited',
      'There are too many streams; close some, or poll',
      `${own} of this environment`,
    );
  }

  open(request: StreamRequest, sink: Sink): () => void {
    const viewer = new Viewer(request.environmentId, request.keyId, sink);
    viewer.sendBytes(Buffer.from('retry: 2000\n\n'));
    if (this.#isStopping) {
      endViewer(viewer, 'stopping');
      return () => undefined;
    }
    const seen = this.#sequenceOf(request.lastEventId);
    const channels = request.topics.map((topic) => this.#channel(request.environmentId, topic));
    this.#viewers.set(viewer, channels);
    for (const channel of channels) join(channel, viewer, seen);
    this.#welcome(viewer);
    if (this.#staleSince !== null) viewer.send(new Message('stale', { since: this.#staleSince }, null));
    this.#schedule();
    return () => this.#remove(viewer);
  }

  stop(): void {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    clearInterval(this.#recordsTimer);
    for (const viewer of [...this.#viewers.keys()]) this.#end(viewer, 'stopping');
    for (const { environmentId } of this.#channels.values()) this.#options.records.close(environmentId);
    this.#channels.clear();
  }

  #channel(environmentId: number, topic: Topic): Channel {
    const name = channelName(environmentId, topic);
    const known = this.#channels.get(name);
    if (known !== undefined) return known;
    const isRecords = topic.kind === 'records';
    const view = isRecords ? this.#options.records.open(environmentId) : createView(environmentId, topic);
    const channel = new Channel(environmentId, topic, view, this.#sequence);
    this.#channels.set(name, channel);
    if (isRecords) this.#recordsTimer ??= setInterval(() => this.#showRecords(), liveRecordsTickMs).unref();
    return channel;
  }

  #showRecords(): void {
    for (const channel of this.#channels.values()) {
      const found = channel.view instanceof RecordsView ? channel.view.takeNew() : null;
      if (found !== null) this.#publish(channel, found);
    }
  }

  #publish(channel: Channel, change: object): void {
    this.#sequence++;
    channel.publish(this.#sequence, new Message(channel.topic.kind, change, this.#id));
  }

  /** Sends everything of the topics that it waits for, as far as it is known now; after the last an id to come back to. */
  #welcome(viewer: Viewer): void {
    if (viewer.waitsFor === 0) return;
    for (const channel of this.#viewers.get(viewer) ?? []) if (channel.isCurrent) channel.welcome(viewer);
    if (viewer.waitsFor === 0) viewer.send(new Message('ready', { server: serverName }, this.#id));
  }

  get #id(): string {
    return `${this.#epoch}-${this.#sequence}`;
  }

  #sequenceOf(lastEventId: string | null): number | null {
    const [, epoch, sequence] = /^([0-9a-f]{12})-(\d{1,15})$/.exec(lastEventId ?? '') ?? [];
    return epoch === this.#epoch && Number(sequence) <= this.#sequence ? Number(sequence) : null;
  }

  #remove(viewer: Viewer): void {
    const channels = this.#viewers.get(viewer);
    if (channels === undefined) return;
    this.#viewers.delete(viewer);
    for (const channel of channels) channel.remove(viewer);
    if (this.#viewers.size === 0) this.#schedule();
  }

  #end(viewer: Viewer, reason: EndReason): void {
    this.#remove(viewer);
    endViewer(viewer, reason);
  }

  /** While somebody watches the ledger is looked at; after the last has left, what was kept for them is forgotten. */
  #schedule(): void {
    if (this.#isStopping || this.#isLooking) return;
    clearTimeout(this.#timer);
    if (this.#viewers.size === 0) {
      if (this.#channels.size > 0) this.#timer = setTimeout(() => this.#forget(), liveLingerMs).unref();
      return;
    }
    const waitMs = Math.max(0, this.#lookedAt + this.#tickMs - performance.now());
    this.#timer = setTimeout(() => void this.#tick(), waitMs).unref();
  }

  #forget(): void {
    const before = performance.now() - liveLingerMs;
    for (const [name, { leftAt, topic, environmentId }] of this.#channels) {
      if (leftAt === null || leftAt > before) continue;
      this.#channels.delete(name);
      if (topic.kind === 'records') this.#options.records.close(environmentId);
    }
    if ([...this.#channels.values()].every(({ topic }) => topic.kind !== 'records')) {
      clearInterval(this.#recordsTimer);
      this.#recordsTimer = undefined;
    }
    this.#schedule();
  }

  async #tick(): Promise<void> {
    this.#lookedAt = performance.now();
    this.#isLooking = true;
    try {
      await this.#look();
    } finally {
      this.#isLooking = false;
    }
    for (const viewer of this.#viewers.keys()) this.#attend(viewer);
    this.#forget();
  }

  async #look(): Promise<void> {
    const channels = [...this.#channels.values()].filter(({ leftAt }) => leftAt === null);
    const keys = [...new Set([...this.#viewers.keys()].map(({ keyId }) => keyId))];
    const ofChunks = (wanted: string) =>
      channels.filter(({ view }) => view.chunks === wanted).flatMap(({ view }) => view.jobs);
    const all = ofChunks('all');
    let answer: LiveAnswer;
    try {
      answer = await readLive(this.#options.pool, {
        environments: unique(channels.filter(isOfEnvironment).map(({ environmentId }) => environmentId)),
        jobs: unique(channels.flatMap(({ view }) => view.jobs)),
        chunks: unique([...all, ...ofChunks('changed')]),
        allChunks: unique(all),
        keys,
      });
    } catch (error) {
      this.#isAway(error);
      return;
    }
    this.#isBack();
    for (const viewer of [...this.#viewers.keys()]) {
      const isAsked = keys.includes(viewer.keyId) && viewer.keyId !== staticKeyId;
      if (isAsked && !answer.keys.includes(viewer.keyId)) this.#end(viewer, 'key');
    }
    for (const channel of channels) this.#take(channel, answer);
    for (const viewer of this.#viewers.keys()) this.#welcome(viewer);
  }

  #take(channel: Channel, answer: LiveAnswer): void {
    const change = channel.view.update(answer);
    channel.isCurrent ||= channel.leftAt === null;
    if (change !== null) this.#publish(channel, change);
  }

  #isAway(error: unknown): void {
    for (const channel of this.#channels.values()) channel.isCurrent = isOfRecords(channel);
    if (this.#staleSince !== null) return;
    this.#staleSince = new Date().toISOString();
    this.#options.log.warn({ err: error }, 'live views: the ledger does not answer');
    this.#tellAll('stale', { since: this.#staleSince });
  }

  #isBack(): void {
    if (this.#staleSince === null) return;
    this.#staleSince = null;
    this.#tellAll('stale', { since: null });
  }

  #tellAll(event: string, data: object): void {
    const message = new Message(event, data, null);
    for (const viewer of this.#viewers.keys()) viewer.send(message);
  }

  /** Whoever missed something and has read all before it is told how much, and gets everything anew. */
  #attend(viewer: Viewer): void {
    if (viewer.missed > 0 && viewer.sink.unread() === 0) {
      const events = viewer.missed;
      viewer.missed = 0;
      viewer.send(new Message('missed', { events }, null));
      for (const channel of this.#viewers.get(viewer) ?? []) channel.expect(viewer);
      this.#welcome(viewer);
    }
    if (performance.now() - viewer.lastSentAt >= liveHeartbeatMs) {
      viewer.sendBytes(Buffer.from(': still here\n\n'));
    }
  }
}

/** Whoever lost its connection goes on behind what it has seen; whoever has seen nothing, or comes too late, begins anew. */
function join(channel: Channel, viewer: Viewer, seen: number | null): void {
  channel.leftAt = null;
  const missed = seen === null ? null : channel.since(seen);
  if (missed === null) {
    channel.expect(viewer);
    return;
  }
  channel.viewers.add(viewer);
  for (const { message } of missed) viewer.send(message);
}

function endViewer({ sink }: Viewer, reason: EndReason): void {
  sink.write(Buffer.from(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`));
  sink.end();
}

function isOfEnvironment({ topic }: Channel): boolean {
  return topic.kind === 'jobs' || topic.kind === 'pulse';
}

function isOfRecords({ topic }: Channel): boolean {
  return topic.kind === 'records';
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
