import { MAX_LIVE_UNREAD_BYTES } from '../domain/limits.ts';
import type { Topic, View } from './views.ts';

export interface Sink {
  write(bytes: Buffer): void;
  unread(): number;
  end(): void;
}

export function eventBytes(event: string, data: object): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Whoever watches: a stream of one caller. */
export class Viewer {
  readonly environmentId: number;
  readonly keyId: string;
  readonly sink: Sink;
  /** Messages that were left out because it did not read the ones before. */
  missed = 0;
  /** Topics of which it is still to get everything. */
  waitsFor = 0;
  lastSentAt = performance.now();

  constructor(environmentId: number, keyId: string, sink: Sink) {
    this.environmentId = environmentId;
    this.keyId = keyId;
    this.sink = sink;
  }

  /** Whoever has read everything gets the next message, however large; whoever has too much unread misses it. */
  send(bytes: Buffer): void {
    const unread = this.sink.unread();
    if (this.missed > 0 || (unread > 0 && unread + bytes.length > MAX_LIVE_UNREAD_BYTES)) {
      this.missed++;
      return;
    }
    this.lastSentAt = performance.now();
    this.sink.write(bytes);
  }
}

/** A channel is a topic of an environment: what is known of it, and who watches it. */
export class Channel {
  readonly environmentId: number;
  readonly topic: Topic;
  readonly view: View;
  readonly viewers = new Set<Viewer>();
  /** They get everything at the next look, then what changes. */
  readonly newcomers = new Set<Viewer>();
  isCurrent: boolean;

  constructor(environmentId: number, topic: Topic, view: View) {
    this.environmentId = environmentId;
    this.topic = topic;
    this.view = view;
    this.isCurrent = topic.kind === 'records';
  }

  get isWatched(): boolean {
    return this.viewers.size + this.newcomers.size > 0;
  }

  /** The bytes are made once and shared by all who get them. */
  publish(change: object): void {
    const bytes = eventBytes(this.topic.kind, change);
    for (const viewer of this.viewers) viewer.send(bytes);
  }

  expect(viewer: Viewer): void {
    this.viewers.delete(viewer);
    if (this.newcomers.has(viewer)) return;
    this.newcomers.add(viewer);
    viewer.waitsFor++;
  }

  welcome(viewer: Viewer): void {
    const snapshot = this.view.snapshot();
    if (snapshot === null || !this.newcomers.delete(viewer)) return;
    this.viewers.add(viewer);
    viewer.send(eventBytes(this.topic.kind, snapshot));
    viewer.waitsFor--;
  }

  remove(viewer: Viewer): void {
    this.viewers.delete(viewer);
    this.newcomers.delete(viewer);
  }
}
