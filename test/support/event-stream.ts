import { waitFor } from './wait-for.ts';

interface StreamJob {
  readonly job_id: string;
  readonly status: string;
  readonly counts: Readonly<Record<string, number>> | null;
}

/** What events have, each some of it. */
export interface StreamData {
  readonly snapshot?: boolean;
  readonly jobs?: readonly StreamJob[];
  readonly job?: StreamJob | null;
  readonly chunks?: readonly Readonly<Record<string, unknown>>[];
  readonly records?: readonly Readonly<Record<string, unknown>>[];
  readonly arrived?: number;
  readonly refused?: number;
  readonly shown?: number;
  readonly running?: readonly StreamJob[];
  readonly queued?: number;
  readonly events?: number;
  readonly reason?: string;
}

interface StreamEvent {
  readonly event: string;
  readonly data: StreamData;
}

/** A stream of server-sent events, read as a browser does. */
export class EventStream {
  readonly events: StreamEvent[] = [];
  comments = 0;
  ended = false;
  readonly #abort = new AbortController();

  static async open(
    address: string,
    topics: string,
    { key }: { readonly key: string },
  ): Promise<EventStream> {
    const stream = new EventStream();
    const response = await fetch(`${address}/v1/stream?topics=${topics}`, {
      headers: { authorization: `Token ${key}` },
      signal: stream.#abort.signal,
    });
    if (response.status !== 200) throw new Error(`the stream was answered ${response.status}`);
    void stream.#read(response);
    return stream;
  }

  async #read({ body }: Response): Promise<void> {
    let text = '';
    try {
      for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const blocks = (text + piece).split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) this.#take(block);
      }
    } catch {
      // It was closed, by either side.
    }
    this.ended = true;
  }

  #take(block: string): void {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? null;
    if (block.startsWith(':')) this.comments++;
    const [event, data] = [field('event'), field('data')];
    if (event === null || data === null) return;
    this.events.push({ event, data: JSON.parse(data) as StreamData });
  }

  /** Waits for an event that has come, or comes. */
  until(event: string, isMeant: (data: StreamData) => boolean = () => true): Promise<StreamEvent> {
    return waitFor(`the event ${event} among ${this.events.length}`, () =>
      this.events.find((each) => each.event === event && isMeant(each.data)),
    );
  }

  close(): void {
    this.#abort.abort();
  }
}
