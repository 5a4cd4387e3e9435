/*
 * Live views: what a browser, or a program, watches instead of asking again and again. A stream is about topics; a topic of an
 * environment is a channel, which knows what it said last and says what has changed since. Begin with `Live.open`; `views.ts` has
 * what each topic says and the records as they arrive, `src/postgres/stores/live.ts` the one look at the ledger.
 *
 * Promises: one statement a second however many watch, and none while nobody does; a stream begins with everything, also when it
 * comes back; who does not read is told how much was left out; a stream ends with its key.
 */

import type pg from 'pg';
import type { Logger } from 'pino';
import { staticKeyId } from '../access/verify-key.ts';
import { inputError } from '../domain/errors.ts';
import { type LiveAnswer, readLive } from '../postgres/stores/live.ts';
import { Channel, eventBytes, type Sink, Viewer } from './channel.ts';
import {
  channelName,
  createView,
  type EnvironmentState,
  RecordsView,
  type RecordTap,
  server,
  type Topic,
} from './views.ts';

const liveTickMs = 1_000;
const liveHeartbeatMs = 15_000;
const maxLiveStreamsPerEnvironment = 500;
const maxLiveStreams = 1_000;
const liveRecordsTickMs = 250;

interface LiveOptions {
  readonly pool: pg.Pool;
  readonly log: Logger;
  readonly records: RecordTap;
  readonly tickMs?: number;
}

interface StreamRequest {
  readonly environmentId: number;
  readonly keyId: string;
  readonly topics: readonly Topic[];
}

type EndReason = 'key' | 'stopping';

export class Live {
  readonly #options: LiveOptions;
  readonly #tickMs: number;
  readonly #channels = new Map<string, Channel>();
  readonly #viewers = new Map<Viewer, readonly Channel[]>();
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
    viewer.send(Buffer.from('retry: 2000\n\n'));
    if (this.#isStopping) {
      endViewer(viewer, 'stopping');
      return () => undefined;
    }
    const channels = request.topics.map((topic) => this.#channel(request.environmentId, topic));
    this.#viewers.set(viewer, channels);
    for (const channel of channels) channel.expect(viewer);
    this.#welcome(viewer);
    if (this.#staleSince !== null) viewer.send(eventBytes('stale', { since: this.#staleSince }));
    this.#schedule();
    return () => this.#remove(viewer);
  }

  stop(): void {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    clearInterval(this.#recordsTimer);
    for (const viewer of [...this.#viewers.keys()]) this.#end(viewer, 'stopping');
  }

  #channel(environmentId: number, topic: Topic): Channel {
    const name = channelName(environmentId, topic);
    const known = this.#channels.get(name);
    if (known !== undefined) return known;
    const isRecords = topic.kind === 'records';
    const view = isRecords ? this.#options.records.open(environmentId) : createView(topic);
    const channel = new Channel(environmentId, topic, view);
    this.#channels.set(name, channel);
    if (isRecords) this.#recordsTimer ??= setInterval(() => this.#showRecords(), liveRecordsTickMs).unref();
    return channel;
  }

  #showRecords(): void {
    for (const channel of this.#channels.values()) {
      const found = channel.view instanceof RecordsView ? channel.view.takeNew() : null;
      if (found !== null) channel.publish(found);
    }
  }

  /** Sends everything of the topics that it waits for, as far as it is known now. */
  #welcome(viewer: Viewer): void {
    if (viewer.waitsFor === 0) return;
    for (const channel of this.#viewers.get(viewer) ?? []) if (channel.isCurrent) channel.welcome(viewer);
    if (viewer.waitsFor === 0) viewer.send(eventBytes('ready', { server }));
  }

  #remove(viewer: Viewer): void {
    const channels = this.#viewers.get(viewer);
    if (channels === undefined) return;
    this.#viewers.delete(viewer);
    for (const channel of channels) {
      channel.remove(viewer);
      if (!channel.isWatched) this.#close(channel);
    }
    if (this.#viewers.size === 0) this.#schedule();
  }

  #close({ environmentId, topic }: Channel): void {
    this.#channels.delete(channelName(environmentId, topic));
    if (topic.kind !== 'records') return;
    this.#options.records.close(environmentId);
    if ([...this.#channels.values()].some(isOfRecords)) return;
    clearInterval(this.#recordsTimer);
    this.#recordsTimer = undefined;
  }

  #end(viewer: Viewer, reason: EndReason): void {
    this.#remove(viewer);
    endViewer(viewer, reason);
  }

  #schedule(): void {
    if (this.#isStopping || this.#isLooking) return;
    clearTimeout(this.#timer);
    if (this.#viewers.size === 0) return;
    const waitMs = Math.max(0, this.#lookedAt + this.#tickMs - performance.now());
    this.#timer = setTimeout(() => void this.#tick(), waitMs).unref();
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
    this.#schedule();
  }

  async #look(): Promise<void> {
    const channels = [...this.#channels.values()];
    const keys = [...new Set([...this.#viewers.keys()].map(({ keyId }) => keyId))];
    const ofChunks = (wanted: string) =>
      channels.filter(({ view }) => view.chunks === wanted).flatMap(({ view }) => view.jobs);
    const all = ofChunks('all');
    let answer: LiveAnswer;
    try {
      answer = await readLive(this.#options.pool, {
        environments: unique(
          channels
            .filter(({ topic }) => topic.kind === 'jobs' || topic.kind === 'pulse')
            .map(({ environmentId }) => environmentId),
        ),
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
    const states = new Map<number, EnvironmentState>();
    for (const channel of channels) {
      const { environmentId } = channel;
      const state = states.get(environmentId) ?? ofEnvironment(answer, environmentId);
      states.set(environmentId, state);
      const change = channel.view.update(state);
      channel.isCurrent = true;
      if (change !== null) channel.publish(change);
    }
    for (const viewer of this.#viewers.keys()) this.#welcome(viewer);
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
    const bytes = eventBytes(event, data);
    for (const viewer of this.#viewers.keys()) viewer.send(bytes);
  }

  /** Whoever missed something and has read all before it is told how much, and gets everything anew. */
  #attend(viewer: Viewer): void {
    if (viewer.missed > 0 && viewer.sink.unread() === 0) {
      const events = viewer.missed;
      viewer.missed = 0;
      viewer.send(eventBytes('missed', { events }));
      for (const channel of this.#viewers.get(viewer) ?? []) channel.expect(viewer);
      this.#welcome(viewer);
    }
    if (performance.now() - viewer.lastSentAt >= liveHeartbeatMs) {
      viewer.send(Buffer.from(': still here\n\n'));
    }
  }
}

function endViewer({ sink }: Viewer, reason: EndReason): void {
  sink.write(eventBytes('end', { reason }));
  sink.end();
}

/** The part of an answer that is about one environment, newest jobs first. */
function ofEnvironment({ jobs, chunks, queued }: LiveAnswer, environmentId: number): EnvironmentState {
  return {
    jobs: jobs
      .filter((job) => job.environmentId === environmentId)
      .sort((a, b) => (a.jobId < b.jobId ? 1 : -1)),
    chunks,
    queued: queued.find((each) => each.environmentId === environmentId)?.count ?? 0,
  };
}

function isOfRecords({ topic }: Channel): boolean {
  return topic.kind === 'records';
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
