import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { CommandFailed } from '../exit-codes.ts';

const connections = 4;
/** Requests that a connection sends before it waits for their answers. */
const depth = 64;

export interface Posts {
  /** Of the server: `http://host:port`. */
  readonly url: string;
  readonly path: string;
  readonly key: string;
  readonly count: number;
  /** JSON of request `n`, from 0. */
  readonly body: (n: number) => string;
  /** Told how many are answered. */
  readonly onAnswered: (count: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Sends many small requests, each on its own, and sees that each is answered 202. Several are under way on a connection
 * (HTTP pipelining), so that the sender leaves the processor to the server it shows.
 */
export async function postPipelined(posts: Posts): Promise<void> {
  let next = 0;
  let answered = 0;
  const take = (): [first: number, end: number] => {
    const first = next;
    next = Math.min(posts.count, first + depth);
    return [first, next];
  };
  const onBatch = (size: number): void => {
    answered += size;
    posts.onAnswered(answered);
  };
  await Promise.all(Array.from({ length: connections }, () => postOnConnection(posts, take, onBatch)));
}

async function postOnConnection(
  posts: Posts,
  take: () => [first: number, end: number],
  onBatch: (size: number) => void,
): Promise<void> {
  const { hostname, port } = new URL(posts.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  try {
    await once(socket, 'connect', { signal: posts.signal });
    const answers = readAnswers(socket);
    for (let [first, end] = take(); first < end; [first, end] = take()) {
      posts.signal.throwIfAborted();
      let requests = '';
      for (let n = first; n < end; n++) requests += requestText(posts, n);
      socket.write(requests);
      for (let n = first; n < end; n++) await expectAccepted(answers, posts.path);
      onBatch(end - first);
    }
  } finally {
    socket.destroy();
  }
}

function requestText({ url, path, key, body }: Posts, n: number): string {
  const text = body(n);
  return (
    `POST ${path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\nauthorization: Token ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

async function expectAccepted(answers: AsyncGenerator<string, void>, path: string): Promise<void> {
  const answer = await answers.next();
  if (answer.done === true) throw new CommandFailed(`${path}: the server closed the connection.`);
  if (!answer.value.startsWith('HTTP/1.1 202 ')) throw new CommandFailed(`${path} answered ${answer.value}`);
}

/** The heads of the answers, one by one; an answer of 202 has no body. */
async function* readAnswers(socket: Socket): AsyncGenerator<string, void> {
  let text = '';
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    text += bytes.toString('latin1');
    let start = 0;
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n', start)) {
      yield text.slice(start, end);
      start = end + 4;
    }
    text = text.slice(start);
  }
}
