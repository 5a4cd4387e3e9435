import { MAX_LIVE_UNREAD_BYTES } from '../domain/limits.ts';
import type { Topic, View } from './views.ts';

const maxLivePastEvents = 200;
const maxLivePastBytes = 512 * 1024;

export interface Sink {
  write(bytes: Buffer): void;
  unread(): number;
  end(): void;
}

/** A message. Its id tells that all before it has been sent; whoever comes back names the last id received. */
export class Message {
  readonly bytes: Buffer;
  readonly #plain: string;
  #withoutId: Buffer | undefined;

  /** Without `id` it is none to come back to. */
  constructor(event: string, data: object, id: string | null) {
    this.#plain = `event: ${event}\ndata: ${JSON.stringify(data)}\n`;
    this.bytes = Buffer.from(`${this.#plain}${id === null ? '' : `id: ${id}\n`}\n`);
  }

  get withoutId(): Buffer {
    this.#withoutId ??= Buffer.from(`${this.#plain}\n`);
    return this.#withoutId;
  }
}

export class Viewer {
  readonly environmentId: number;
  readonly keyId: string;
  readonly sink: Sink;
  /** Messages that were left out because it did not read the ones before. */
  missed = 0;
  /** Topics of which it is still to get everything. Until then an id would promise too much. */
  waitsFor = 0;
  lastSentAt = performance.now();

  constructor(environmentId: number, keyId: string, sink: Sink) {
    this.environmentId = environmentId;
    this.keyId = keyId;
    this.sink = sink;
  }

  /** Whoever has read everything gets the next message, however large; whoever has too much unread misses it. */
  send(message: Message): void {
    this.sendBytes(this.waitsFor > 0 ? message.withoutId : message.bytes);
  }

  sendBytes(bytes: Buffer): void {
    const unread = this.sink.unread();
    if (this.missed > 0 || (unread > 0 && unread + bytes.length > MAX_LIVE_UNREAD_BYTES)) {
      this.missed++;
      return;
    }
    this.lastSentAt = performance.now();
    this.sink.write(bytes);
  }
}

interface PastEvent {
  readonly sequence: number;
  readonly message: Message;
}

/**
 * A topic of an environment: what is known of it, who watches it, and its latest events, for those who lost their
 * connection and come back. A message is made once and shared by all who get it.
 */
export class Channel {
  readonly environmentId: number;
  readonly topic: Topic;
  readonly view: View;
  readonly viewers = new Set<Viewer>();
  /** They get everything at the next look, then what changes. */
  readonly newcomers = new Set<Viewer>();
  leftAt: number | null = null;
  isCurrent: boolean;
  readonly #past: PastEvent[] = [];
  #pastBytes = 0;
  #forgotten: number;

  constructor(environmentId: number, topic: Topic, view: View, sequence: number) {
    this.environmentId = environmentId;
    this.topic = topic;
    this.view = view;
    this.#forgotten = sequence;
    this.isCurrent = topic.kind === 'records';
  }

  publish(sequence: number, message: Message): void {
    this.#past.push({ sequence, message });
    this.#pastBytes += message.bytes.length;
    while (this.#past.length > maxLivePastEvents || this.#pastBytes > maxLivePastBytes) {
      const oldest = this.#past.shift();
      if (oldest === undefined) break;
      this.#pastBytes -= oldest.message.bytes.length;
      this.#forgotten = oldest.sequence;
    }
    for (const viewer of this.viewers) viewer.send(message);
  }

  /** The events after one that a viewer has seen; null if not all of them are kept. */
  since(sequence: number): readonly PastEvent[] | null {
    if (sequence < this.#forgotten) return null;
    return this.#past.filter((event) => event.sequence > sequence);
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
    viewer.send(new Message(this.topic.kind, snapshot, null));
    viewer.waitsFor--;
  }

  remove(viewer: Viewer): void {
    this.viewers.delete(viewer);
    if (this.newcomers.delete(viewer)) viewer.waitsFor--;
    if (this.viewers.size + this.newcomers.size > 0) return;
    this.leftAt = performance.now();
    this.isCurrent = this.topic.kind === 'records';
  }
}
